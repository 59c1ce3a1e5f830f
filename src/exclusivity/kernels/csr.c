/* Products with sparse rows (CSR), whose numbers are floats or doubles and whose indices have 32 or 64 bits. */

#include "kernels.h"

#include <math.h>

/* sum += sum_i factors[i] TERM, a term for each number of a row. */
#define ADD(NAME, NUMBER, INDEX, TERM)                                                                          \
    static ptrdiff_t NAME(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors,          \
                                double *sum)                                                                    \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        ptrdiff_t n_read = 0;                                                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
            double factor = factors[i];                                                                         \
            if (factor == 0)                                                                                    \
                continue;                                                                                       \
            ptrdiff_t at = starts[which[i]], end = starts[which[i] + 1];                                        \
            n_read += end - at;                                                                                 \
            for (; at < end; at++)                                                                              \
                sum[columns[at]] += factor * TERM;                                                              \
        }                                                                                                       \
        return n_read;                                                                                          \
    }

/* The loops for one kind of rows. A product has two sums side by side: one would wait for each addition to end before
   the next begins, and with more of them short rows are mostly what is left over. */
#define LOOPS(KIND, NUMBER, INDEX, UNSIGNED)                                                                    \
    static int is_sound_##KIND(const Csr *rows)                                                                 \
    {                                                                                                           \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        int is_wrong = starts[0] != 0 || starts[rows->n_rows] != rows->n_numbers;                               \
        for (ptrdiff_t i = 0; i < rows->n_rows; i++)                                                            \
            is_wrong |= starts[i] > starts[i + 1];                                                              \
        for (ptrdiff_t at = 0; at < rows->n_numbers; at++)                                                      \
            is_wrong |= (UNSIGNED)columns[at] >= (UNSIGNED)rows->n_features;                                    \
        return !is_wrong;                                                                                       \
    }                                                                                                           \
                                                                                                                \
    static ptrdiff_t times_##KIND(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector,   \
                                  double *products)                                                             \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        ptrdiff_t n_read = 0;                                                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
            double a = 0, b = 0;                                                                                \
            ptrdiff_t at = starts[which[i]], end = starts[which[i] + 1];                                        \
            n_read += end - at;                                                                                 \
            for (; at + 2 <= end; at += 2) {                                                                    \
                a += numbers[at] * vector[columns[at]];                                                         \
                b += numbers[at + 1] * vector[columns[at + 1]];                                                 \
            }                                                                                                   \
            if (at < end)                                                                                       \
                a += numbers[at] * vector[columns[at]];                                                         \
            products[i] = a + b;                                                                                \
        }                                                                                                       \
        return n_read;                                                                                          \
    }                                                                                                           \
                                                                                                                \
    ADD(add_##KIND, NUMBER, INDEX, numbers[at])                                                                 \
    ADD(add_squares_##KIND, NUMBER, INDEX, ((double)numbers[at] * numbers[at]))                                 \
                                                                                                                \
    static void summarise_##KIND(const Csr *rows, double *largest, double *row_squares, double *feature_squares) \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        for (ptrdiff_t i = 0; i < rows->n_rows; i++) {                                                          \
            double sum = 0;                                                                                     \
            for (ptrdiff_t at = starts[i]; at < starts[i + 1]; at++) {                                          \
                double size = fabs((double)numbers[at]), square = size * size;                                  \
                double *most = largest + columns[at];                                                           \
                *most = size > *most ? size : *most;                                                            \
                feature_squares[columns[at]] += square;                                                         \
                sum += square;                                                                                  \
            }                                                                                                   \
            row_squares[i] = sum;                                                                               \
        }                                                                                                       \
    }

LOOPS(doubles, double, int32_t, uint32_t)
LOOPS(doubles_long, double, int64_t, uint64_t)
LOOPS(floats, float, int32_t, uint32_t)
LOOPS(floats_long, float, int64_t, uint64_t)

/* Which of the functions NAME_doubles, NAME_doubles_long, ... is for such rows. */
#define OF_KIND(NAME, ROWS)                                                             \
    ((ROWS)->has_floats ? ((ROWS)->has_long_indices ? NAME##_floats_long : NAME##_floats) \
                        : ((ROWS)->has_long_indices ? NAME##_doubles_long : NAME##_doubles))

int csr_is_sound(const Csr *rows)
{
    return OF_KIND(is_sound, rows)(rows);
}

ptrdiff_t csr_times(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector, double *products)
{
    return OF_KIND(times, rows)(rows, which, n, vector, products);
}

ptrdiff_t csr_add(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum)
{
    return OF_KIND(add, rows)(rows, which, n, factors, sum);
}

ptrdiff_t csr_add_squares(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum)
{
    return OF_KIND(add_squares, rows)(rows, which, n, factors, sum);
}

void csr_summarise(const Csr *rows, double *largest, double *row_squares, double *feature_squares)
{
    OF_KIND(summarise, rows)(rows, largest, row_squares, feature_squares);
}
