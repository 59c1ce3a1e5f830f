#include "together.h"

#include <stdint.h>

/* Sums are taken in the order of ``rows_times`` and ``rows_add``. They are the same only as long as no compiler turns a
   product and a sum into one operation here and two there: setup.py asks it not to. */
#define TOGETHER(KIND, NUMBER, INDEX)                                                                        \
    FOR_MANY_PROCESSORS                                                                                      \
    static void times_##KIND(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *vectors,       \
                             double *products)                                                               \
    {                                                                                                        \
        const NUMBER *numbers = rows->numbers;                                                               \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                        \
        for (ptrdiff_t i = first; i < last; i++) {                                                           \
            double sums[2][MOST_TOGETHER] = {{0}};                                                           \
            ptrdiff_t at = starts[i], end = starts[i + 1];                                                   \
            for (; at + 2 <= end; at += 2)                                                                   \
                for (int s = 0; s < 2; s++)                                                                  \
                    for (int v = 0; v < MOST_TOGETHER; v++)                                                  \
                        sums[s][v] += numbers[at + s] * vectors[MOST_TOGETHER * (ptrdiff_t)columns[at + s] + v]; \
            if (at < end)                                                                                    \
                for (int v = 0; v < MOST_TOGETHER; v++)                                                      \
                    sums[0][v] += numbers[at] * vectors[MOST_TOGETHER * (ptrdiff_t)columns[at] + v];         \
            for (int v = 0; v < MOST_TOGETHER; v++)                                                          \
                products[MOST_TOGETHER * i + v] = sums[0][v] + sums[1][v];                                   \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    FOR_MANY_PROCESSORS                                                                                      \
    static void add_##KIND(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *factors,         \
                           double *sums)                                                                     \
    {                                                                                                        \
        const NUMBER *numbers = rows->numbers;                                                               \
        const INDEX *columns = rows->columns, *starts = rows->starts;                                        \
        for (ptrdiff_t i = first; i < last; i++) {                                                           \
            const double *factor = factors + MOST_TOGETHER * i;                                              \
            for (ptrdiff_t at = starts[i]; at < starts[i + 1]; at++) {                                       \
                double *sum = sums + MOST_TOGETHER * (ptrdiff_t)columns[at], number = numbers[at];           \
                for (int v = 0; v < MOST_TOGETHER; v++)                                                      \
                    sum[v] += factor[v] * number;                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

TOGETHER(doubles, double, int32_t)
TOGETHER(doubles_long, double, int64_t)
TOGETHER(floats, float, int32_t)
TOGETHER(floats_long, float, int64_t)

void together_times(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *vectors, double *products)
{
    OF_KIND(times, rows)(rows, first, last, vectors, products);
}

void together_add(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *factors, double *sums)
{
    OF_KIND(add, rows)(rows, first, last, factors, sums);
}
