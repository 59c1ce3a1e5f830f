/* A walk to the minimum of an SVM over sparse rows, by steps to the best points of planes: see planes.c. */

#ifndef EXCLUSIVITY_PLANES_H
#define EXCLUSIVITY_PLANES_H

#include "rows.h"

/* The loss of a row with cost c and shortfall s is c max { a s - stiffness a^2 / 2 : 0 <= a <= top }. */
typedef struct {
    double stiffness, top;
    int has_intercept;
} Task;

/* It seems close where rows that were left out have not been looked at again: a proof looks at all of them anyway, and
   where it fails, the walk looks before it goes on. */
typedef enum { IS_CLOSE, SEEMS_CLOSE, IS_SLOW, IS_ON_ITS_WAY, IS_INTERRUPTED, IS_WAITING } Ending;

typedef struct Walk Walk;

/* Asked every few hundredths of a second; anything but zero ends the walk. */
typedef int (*Poll)(void *context);

/* A walk that starts at these weights and this intercept, or NULL without memory.

   ``labels`` (-1, 1), ``costs`` and ``centre`` have a number per row, ``weights`` and ``mean_squares`` one per
   feature. ``centre`` is a dual vector, each number over its row's cost, and ``width`` how far the loss around it
   is rounded; 0 leaves the loss as it is. ``mean_squares`` (NULL: none) makes a preconditioner. Rows and mean
   squares have to outlive the walk, the rest is copied. */
Walk *walk_new(const Rows *rows, Task task, const double *labels, const double *costs, const double *weights,
               const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
               void *context);
void walk_free(Walk *walk);

/* On, each of up to MOST_WALKS walks over the same rows until its relative gap is about ``goals[i]`` or so many steps have
   been taken: ``endings[i]`` says which. They share products with all rows, and none depends on the others. */
enum { MOST_WALKS = 8 };
void walks_on(Walk *const *walks, int n_walks, const double *goals, int most_steps, Ending *endings);

/* Such a walk is where it was by chance, and goes on no more. */
int walk_is_interrupted(const Walk *walk);

/* Where the walk is, about: rounding is left to those who prove something with it. */
typedef struct {
    double intercept, width, objective, bound, gradient_norm, passes;
} Place;
Place walk_place(const Walk *walk);

/* The weights; the slopes there and the best dual vector so far, both over the rows' costs, in the rows' order. */
void walk_write(const Walk *walk, double *weights, double *slopes, double *dual);

#endif
