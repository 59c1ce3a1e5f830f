/* Products with all rows for several vectors at once. */

#ifndef EXCLUSIVITY_TOGETHER_H
#define EXCLUSIVITY_TOGETHER_H

#include "rows.h"

/* So many vectors lie side by side, number by number: eight doubles are a line of a cache. */
enum { MOST_TOGETHER = 8 };

/* For the rows from first to last: products[i][v] = sum_j x_ij vectors[j][v], for a fifth of what they take one by one, and as ``rows_times`` has them to
   the last bit: it does not matter who shares a product with whom. */
void together_times(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *vectors, double *products);

/* And over these rows: sums[j][v] += sum_i factors[i][v] x_ij, likewise as ``rows_add`` has them, for a half. */
void together_add(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *factors, double *sums);

#endif
