#include "csr.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Two sums side by side: one would wait for each addition to end before the next begins, and with more of them short
   rows are mostly what is left over. */
#define PRODUCTS(KIND, NUMBER, INDEX)                                                                           \
    static ptrdiff_t times_##KIND(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector,  \
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
    static ptrdiff_t add_##KIND(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors,   \
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
                sum[columns[at]] += factor * numbers[at];                                                       \
        }                                                                                                       \
        return n_read;                                                                                          \
    }                                                                                                           \
                                                                                                                \
    static ptrdiff_t size_##KIND(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n)                         \
    {                                                                                                           \
        const INDEX *starts = rows->starts;                                                                     \
        ptrdiff_t size = 0;                                                                                     \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            size += (ptrdiff_t)(starts[which[i] + 1] - starts[which[i]]);                                       \
        return size;                                                                                            \
    }                                                                                                           \
                                                                                                                \
    static void count_##KIND(const Csr *rows, int32_t *counts)                                                 \
    {                                                                                                           \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        for (ptrdiff_t at = 0; at < starts[rows->n_rows]; at++)                                                 \
            counts[columns[at]]++;                                                                              \
    }                                                                                                           \
                                                                                                                \
    /* The numbers feature by feature, with their rows; ``ends`` is where those of a feature go. */             \
    static void turn_##KIND(const Csr *rows, int32_t *ends, double *to, int32_t *to_rows)                      \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        for (ptrdiff_t i = 0; i < rows->n_rows; i++) {                                                          \
            for (ptrdiff_t at = starts[i]; at < starts[i + 1]; at++) {                                          \
                int32_t place = ends[columns[at]]++;                                                            \
                to[place] = numbers[at];                                                                        \
                to_rows[place] = (int32_t)i;                                                                    \
            }                                                                                                   \
        }                                                                                                       \
    }                                                                                                           \
                                                                                                                \
    static void summarise_##KIND(const Csr *rows, double *largest, double *row_squares, double *feature_squares)  \
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
    }                                                                                                           \
                                                                                                                \
    /* Features are numbered as they come; ``known`` has a -1 for those that have not. */                       \
    static void copy_##KIND(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, int32_t *known, double *to,  \
                            int32_t *to_columns, int32_t *to_starts, ptrdiff_t *features, ptrdiff_t *n_features) \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        int32_t n_written = 0, n_known = 0;                                                                     \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
            to_starts[i] = n_written;                                                                           \
            for (ptrdiff_t at = starts[which[i]], end = starts[which[i] + 1]; at < end; at++) {                 \
                if (known[columns[at]] < 0) {                                                                   \
                    features[n_known] = (ptrdiff_t)columns[at];                                                 \
                    known[columns[at]] = n_known++;                                                             \
                }                                                                                               \
                to[n_written] = numbers[at];                                                                    \
                to_columns[n_written++] = known[columns[at]];                                                   \
            }                                                                                                   \
        }                                                                                                       \
        to_starts[n] = n_written;                                                                               \
        *n_features = n_known;                                                                                  \
    }

PRODUCTS(doubles, double, int32_t)
PRODUCTS(doubles_long, double, int64_t)
PRODUCTS(floats, float, int32_t)
PRODUCTS(floats_long, float, int64_t)

ptrdiff_t csr_times(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector, double *products)
{
    return OF_KIND(times, rows)(rows, which, n, vector, products);
}

ptrdiff_t csr_add(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum)
{
    return OF_KIND(add, rows)(rows, which, n, factors, sum);
}

ptrdiff_t csr_size(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n)
{
    return OF_KIND(size, rows)(rows, which, n);
}

void csr_summarise(const Csr *rows, double *largest, double *row_squares, double *feature_squares)
{
    OF_KIND(summarise, rows)(rows, largest, row_squares, feature_squares);
}

static int new_copy(ptrdiff_t n_rows, size_t size, size_t most_features, CsrCopy *copy)
{
    double *numbers = malloc(size * sizeof *numbers + 1);
    int32_t *columns = malloc((size + (size_t)n_rows + 1) * sizeof *columns);
    copy->features = malloc(most_features * sizeof *copy->features + 1);
    copy->rows = (Csr){.n_rows = n_rows, .numbers = numbers, .columns = columns, .starts = columns + size};
    copy->numbers = numbers;
    copy->indices = columns;
    if (numbers != NULL && columns != NULL && copy->features != NULL)
        return 1;
    csr_free(copy);
    return 0;
}

int csr_copy(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, CsrCopy *copy)
{
    size_t size = (size_t)csr_size(rows, which, n), m = (size_t)rows->n_features;
    if (size >= INT32_MAX || n >= INT32_MAX)
        return 0;
    int32_t *known = malloc(m * sizeof *known + 1);
    if (known == NULL || !new_copy(n, size, size < m ? size : m, copy)) {
        free(known);
        return 0;
    }
    memset(known, -1, m * sizeof *known);
    int32_t *columns = copy->indices;
    OF_KIND(copy, rows)(rows, which, n, known, copy->numbers, columns, columns + size, copy->features,
                        &copy->rows.n_features);
    free(known);
    return 1;
}

/* Features by how often they occur, and how many do: counts are sorted by counting. One may be in a row twice. */
static ptrdiff_t by_frequency(const int32_t *counts, ptrdiff_t n_features, int32_t *ends, ptrdiff_t n_rows,
                              ptrdiff_t *features)
{
    memset(ends, 0, (size_t)(n_rows + 2) * sizeof *ends);
    for (ptrdiff_t j = 0; j < n_features; j++)
        ends[counts[j] < n_rows ? counts[j] : n_rows]++;
    ptrdiff_t n_there = n_features - ends[0];
    for (ptrdiff_t count = n_rows, before = 0; count > 0; count--) { /* the most frequent come first */
        ptrdiff_t here = ends[count];
        ends[count] = (int32_t)before;
        before += here;
    }
    for (ptrdiff_t j = 0; j < n_features; j++)
        if (counts[j] > 0)
            features[ends[counts[j] < n_rows ? counts[j] : n_rows]++] = j;
    return n_there;
}

/* Rows out of numbers that are sorted by features: each row gets them in this order. */
static void write_sorted(CsrCopy *copy, const int32_t *counts, const double *numbers, const int32_t *rows_of,
                         int32_t *ends)
{
    double *to = copy->numbers;
    int32_t *columns = copy->indices;
    ptrdiff_t at = 0;
    memcpy(ends, copy->rows.starts, (size_t)copy->rows.n_rows * sizeof *ends);
    for (ptrdiff_t j = 0; j < copy->rows.n_features; j++) {
        for (int32_t left = counts[copy->features[j]]; left > 0; left--, at++) {
            int32_t place = ends[rows_of[at]]++;
            to[place] = numbers[at];
            columns[place] = (int32_t)j;
        }
    }
}

int csr_copy_by_frequency(const Csr *rows, const ptrdiff_t *all, CsrCopy *copy)
{
    ptrdiff_t n = rows->n_rows, m = rows->n_features;
    size_t size = (size_t)csr_size(rows, all, n);
    if (size >= INT32_MAX || n >= INT32_MAX || m >= INT32_MAX || !new_copy(n, size, (size_t)m, copy))
        return 0;
    int32_t *starts = (int32_t *)copy->indices + size;
    int32_t *counts = calloc((size_t)m + 1, sizeof *counts);
    int32_t *ends = malloc((size_t)(m > n ? m : n) * sizeof *ends + 2 * sizeof *ends);
    double *numbers = malloc(size * sizeof *numbers + 1);
    int32_t *rows_of = malloc(size * sizeof *rows_of + 1);
    int has_memory = counts != NULL && ends != NULL && numbers != NULL && rows_of != NULL;
    if (has_memory) {
        OF_KIND(count, rows)(rows, counts);
        for (ptrdiff_t i = 0, before = 0; i <= n; i++) {
            starts[i] = (int32_t)before;
            before += i < n ? csr_size(rows, all + i, 1) : 0;
        }
        copy->rows.n_features = by_frequency(counts, m, ends, n, copy->features);
        for (ptrdiff_t j = 0, before = 0; j < copy->rows.n_features; j++) {
            ends[copy->features[j]] = (int32_t)before;
            before += counts[copy->features[j]];
        }
        OF_KIND(turn, rows)(rows, ends, numbers, rows_of);
        write_sorted(copy, counts, numbers, rows_of, ends);
    } else {
        csr_free(copy);
    }
    free(counts);
    free(ends);
    free(numbers);
    free(rows_of);
    return has_memory;
}

void csr_free(CsrCopy *copy)
{
    free(copy->numbers);
    free(copy->indices);
    free(copy->features);
    *copy = (CsrCopy){0};
}
