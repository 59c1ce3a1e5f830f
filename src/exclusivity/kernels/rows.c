#include "rows.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Four sums side by side: one would wait for each addition to end before the next begins. */
#define PRODUCTS(KIND, NUMBER, INDEX)                                                                           \
    static ptrdiff_t times_##KIND(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector,  \
                                  double *products)                                                             \
    {                                                                                                           \
        const NUMBER *numbers = rows->numbers;                                                                  \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                           \
        ptrdiff_t n_read = 0;                                                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                     \
            double a = 0, b = 0, c = 0, d = 0;                                                                  \
            ptrdiff_t at = starts[which[i]], end = starts[which[i] + 1];                                        \
            n_read += end - at;                                                                                 \
            for (; at + 4 <= end; at += 4) {                                                                    \
                a += numbers[at] * vector[columns[at]];                                                         \
                b += numbers[at + 1] * vector[columns[at + 1]];                                                 \
                c += numbers[at + 2] * vector[columns[at + 2]];                                                 \
                d += numbers[at + 3] * vector[columns[at + 3]];                                                 \
            }                                                                                                   \
            for (; at < end; at++)                                                                              \
                a += numbers[at] * vector[columns[at]];                                                         \
            products[i] = (a + b) + (c + d);                                                                    \
        }                                                                                                       \
        return n_read;                                                                                          \
    }                                                                                                           \
                                                                                                                \
    static ptrdiff_t add_##KIND(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors,   \
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
    static ptrdiff_t size_##KIND(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n)                         \
    {                                                                                                           \
        const INDEX *starts = rows->starts;                                                                     \
        ptrdiff_t size = 0;                                                                                     \
        for (ptrdiff_t i = 0; i < n; i++)                                                                       \
            size += (ptrdiff_t)(starts[which[i] + 1] - starts[which[i]]);                                       \
        return size;                                                                                            \
    }                                                                                                           \
                                                                                                                \
    static void survey_##KIND(const Rows *rows, double *largest, double *row_squares, double *feature_squares)  \
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
    static void copy_##KIND(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, int32_t *known, double *to,  \
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

#define OF_KIND(NAME, ROWS)                                                                       \
    ((ROWS)->has_floats ? ((ROWS)->has_long_indices ? NAME##_floats_long : NAME##_floats)         \
                        : ((ROWS)->has_long_indices ? NAME##_doubles_long : NAME##_doubles))

ptrdiff_t rows_times(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector, double *products)
{
    return OF_KIND(times, rows)(rows, which, n, vector, products);
}

ptrdiff_t rows_add(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum)
{
    return OF_KIND(add, rows)(rows, which, n, factors, sum);
}

ptrdiff_t rows_size(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n)
{
    return OF_KIND(size, rows)(rows, which, n);
}

void rows_survey(const Rows *rows, double *largest, double *row_squares, double *feature_squares)
{
    OF_KIND(survey, rows)(rows, largest, row_squares, feature_squares);
}

int rows_copy(const Rows *rows, const ptrdiff_t *which, ptrdiff_t n, RowsCopy *copy)
{
    size_t size = (size_t)rows_size(rows, which, n);
    size_t most_features = size < (size_t)rows->n_features ? size : (size_t)rows->n_features;
    if (size >= INT32_MAX || n >= INT32_MAX)
        return 0;
    int32_t *known = malloc((size_t)rows->n_features * sizeof *known + 1);
    double *numbers = malloc(size * sizeof *numbers + 1);
    int32_t *columns = malloc((size + (size_t)n + 1) * sizeof *columns);
    copy->features = malloc(most_features * sizeof *copy->features + 1);
    copy->rows = (Rows){.n_rows = n, .numbers = numbers, .columns = columns, .starts = columns + size};
    copy->numbers = numbers;
    copy->indices = columns;
    if (known == NULL || numbers == NULL || columns == NULL || copy->features == NULL) {
        free(known);
        rows_free(copy);
        return 0;
    }
    memset(known, -1, (size_t)rows->n_features * sizeof *known);
    OF_KIND(copy, rows)(rows, which, n, known, numbers, columns, columns + size, copy->features,
                        &copy->rows.n_features);
    free(known);
    return 1;
}

void rows_free(RowsCopy *copy)
{
    free(copy->numbers);
    free(copy->indices);
    free(copy->features);
    *copy = (RowsCopy){0};
}
