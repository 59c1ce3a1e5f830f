/* Compiled loops over rows, without any Python: module.c checks the arrays and calls these. */

#ifndef EXCLUSIVITY_KERNELS_H
#define EXCLUSIVITY_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* ---- csr.c: products with sparse rows ---- */

typedef struct {
    ptrdiff_t n_rows, n_features, n_numbers;
    const void *numbers;          /* float or double */
    const void *columns, *starts; /* int32_t or int64_t, both of them */
    int has_floats, has_long_indices;
} Csr;

/* 0 unless each row starts where the last one ended, and all columns are features. */
int csr_is_sound(const Csr *rows);

/* products[i] = x_(which[i]) . vector for n rows; how many numbers were read. */
ptrdiff_t csr_times(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *vector, double *products);

/* sum += sum_i factors[i] x_(which[i]) over n rows, those with a factor of zero left unread; how many were read. */
ptrdiff_t csr_add(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum);

/* The same with the squares of the numbers. */
ptrdiff_t csr_add_squares(const Csr *rows, const ptrdiff_t *which, ptrdiff_t n, const double *factors, double *sum);

/* max_i |x_ij| and sum_i x_ij^2 of every feature, which start at zero, and |x_i|^2 of every row. */
void csr_summarise(const Csr *rows, double *largest, double *row_squares, double *feature_squares);

/* ---- subspace.c: linear SVMs over sparse rows ---- */

/* The loss of a row with cost c and margin violation m is c max { a m - stiffness a^2 / 2 : 0 <= a <= top }. */
typedef struct {
    double stiffness, top;
    int has_intercept;
} Task;

typedef enum { CONVERGED, STALLED, STEP_LIMIT, INTERRUPTED } Ending;

/* Called every few hundredths of a second; anything but zero ends the run. */
typedef int (*Poll)(void *context);

typedef struct Solver Solver;

/* A run that starts at these weights and this intercept, or NULL without memory.

   ``labels`` (-1, 1), ``costs`` and ``centre`` have a number per row, ``weights`` and ``mean_squares`` one per feature.
   ``centre`` is a dual vector, each number over its row's cost, and ``width`` how far the loss around it is rounded; 0
   leaves the loss as it is. ``mean_squares`` (NULL: none) makes a preconditioner. It and the rows have to outlive the
   run, the rest is copied. */
Solver *solver_new(const Csr *rows, Task task, const double *labels, const double *costs, const double *weights,
                   const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
                   void *context);
void solver_free(Solver *solver);

/* Take steps until the relative gap is about ``goal``, no step helps, or so many have been taken. */
Ending solver_advance(Solver *solver, double goal, int most_steps);

/* An interrupted run has stopped anywhere in a step and cannot go on. */
int solver_is_interrupted(const Solver *solver);

/* Estimates at the current iterate, without rounding errors: the caller proves something with them. */
typedef struct {
    double intercept, width, objective, bound, gradient_norm, passes;
} Iterate;
Iterate solver_iterate(const Solver *solver);

/* The weights; the slopes there and the best dual vector so far, both over the rows' costs, in the rows' order. */
void solver_write(const Solver *solver, double *weights, double *slopes, double *dual);

/* ---- additive.c: the robust additive model ---- */

enum { SQUARED_HINGE, HINGE, LOGISTIC };

typedef struct {
    const int32_t *left;    /* n_rows x n_columns */
    const double *weight;   /* n_rows x n_columns, of the point to the right */
    const double *cost;     /* n_rows */
    const double *points;   /* n_points + 1 values, seen from the class of the rows */
    const int32_t *reach;   /* the slice that is reached from each point */
    const double *low;      /* the smallest value of each slice; infinite: nothing is reached */
    const int32_t *shifted; /* columns where a mixture reaches what its right point does */
    const int32_t *group;   /* of every column */
    const int32_t *radii;
    const double *shares; /* of the loss, for each of the radii */
    double *own, *moved, *totals;
    double *hessian; /* upper triangle, size x size; NULL: not wanted */
    ptrdiff_t n_rows, n_columns, n_points, n_slices, n_groups, n_radii, size;
    double intercept, eps; /* eps = 0: the loss without any smoothing, and nothing else */
    int loss, step;        /* every step-th row, with the costs of all */
} AdditivePass;

/* Add the sums over the rows; 0 without memory. */
int additive_run(const AdditivePass *pass);

#endif
