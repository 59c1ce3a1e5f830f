/* Sparse rows (CSR): products with some of them, and copies of these. */

#ifndef EXCLUSIVITY_CSR_H
#define EXCLUSIVITY_CSR_H

#include <stddef.h>

/* Loops over vectors are compiled twice where the loader can choose between them as the program starts: for any
   processor, and for those with vectors of four doubles, on which a fit takes two thirds of the time. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#define FOR_MANY_PROCESSORS __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_MANY_PROCESSORS
#endif

typedef struct {
    ptrdiff_t n_rows, n_features;
    const void *numbers; /* float or double */
    const void *columns, *starts; /* int32_t or int64_t, both of them */
    int has_floats, has_long_indices;
} Csr;

/* Which of the functions NAME_doubles, NAME_doubles_long, ... is for such rows. */
#define OF_KIND(NAME, ROWS)                                                                       \
    ((ROWS)->has_floats ? ((ROWS)->has_long_indices ? NAME##_floats_long : NAME##_floats)         \
                        : ((ROWS)->has_long_indices ? NAME##_doubles_long : NAME##_doubles))

/* How many numbers are stored in n rows. */
ptrdiff_t csr_size(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n);

/* products[i] = x_(which[i]) . vector for n rows; how many numbers were read. */
ptrdiff_t csr_times(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector, double *products);

/* sum += sum_i factors[i] x_(which[i]) over n rows, those with a factor of zero left unread; how many were read. */
ptrdiff_t csr_add(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum);

/* max_i |x_ij| and sum_i x_ij^2 of every feature, which start at zero, and |x_i|^2 of every row. */
void csr_summarise(const Csr *rows, double *largest, double *row_squares, double *feature_squares);

/* Some rows in doubles, with the features that occur in them alone: features[j] is what they are in the rows copied. */
typedef struct {
    Csr rows;
    ptrdiff_t *features;
    void *numbers, *indices;
} CsrCopy;

/* 0 without memory, or where there are too many numbers. */
int csr_copy(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, CsrCopy *copy);
/* All rows (``all`` counts them), those features first that are in most of them, and each row in this order: products
   with millions of features then find most of what they need in a cache. Takes twice the memory of the copy on the way. */
int csr_copy_by_frequency(const Csr *rows, const ptrdiff_t *all, CsrCopy *copy);
void csr_free(CsrCopy *copy);

#endif
