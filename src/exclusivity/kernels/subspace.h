/* A subspace method for linear SVMs over sparse rows: subspace.c has the algorithm. */

#ifndef EXCLUSIVITY_SUBSPACE_H
#define EXCLUSIVITY_SUBSPACE_H

#include "csr.h"

/* ---- for module.c ---- */

/* The loss of a row with cost c and margin violation m is c max { a m - stiffness a^2 / 2 : 0 <= a <= top }. */
typedef struct {
    double stiffness, top;
    int has_intercept;
} Task;

/* SEEMS_CONVERGED: on the active rows; the caller's certificate looks at all rows, and where it fails, the next call does so
   before it goes on. */
typedef enum { CONVERGED, SEEMS_CONVERGED, STALLED, STEP_LIMIT, INTERRUPTED } Ending;

typedef struct Solver Solver;

/* Called every few hundredths of a second; anything but zero ends the run. */
typedef int (*Poll)(void *context);

/* A run that starts at these weights and this intercept, or NULL without memory.

   ``labels`` (-1, 1), ``costs`` and ``centre`` have a number per row, ``weights`` and ``mean_squares`` one per feature.
   ``centre`` is a dual vector, each number over its row's cost, and ``width`` how far the loss around it is rounded; 0 leaves
   the loss as it is. ``mean_squares`` (NULL: none) makes a preconditioner. Rows and mean squares have to outlive the run, the
   rest is copied. */
Solver *solver_new(const Csr *rows, Task task, const double *labels, const double *costs, const double *weights,
                   const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
                   void *context);
void solver_free(Solver *solver);

/* Steps until the relative gap is about ``goal``, no step helps, or so many have been taken. */
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

/* ---- for the parts of the method ---- */

#define MOST_ACTIVE_SETS 12

/* The directions of a step. */
enum { DESCENT, LAST, INTERCEPT, N_DIRECTIONS };

/* Two directions in the features that do not occur in an active copy: where their gradient g = w - u and the last step l are, as
   sums of where these two were when the copy was made, and all products of those with each other and with u. */
typedef struct {
    double gradient[2], last[2];
    double gg, gl, ll, ug, ul, uu;
} Absent;

/* Rows and features that steps read: all of them, or a copy of the active rows with the features that occur in them. */
typedef struct ActiveCopy {
    Csr rows;
    ptrdiff_t *which; /* where the active rows are in ``rows`` */
    const double *mean_squares;
    double *weights, *dual_weights, *descent, *last, *combined_weights, *fixed_weights; /* a number per feature */
    Absent absent;
    CsrCopy csr; /* of a part of the copy below */
    struct ActiveCopy *below;
    void *memory;
} ActiveCopy;

/* The active rows before some of them were left out. */
typedef struct {
    ptrdiff_t n_rows;
    double trust_radius, drift; /* how far margins of the rows that stayed may move, and have moved */
    double gap;
    int has_copy; /* of its own */
} ActiveSet;

struct Solver {
    ptrdiff_t n_rows, n_active;
    ptrdiff_t n_with_last; /* active rows whose margin violations along the last step are known */
    double n_numbers;
    Task task;
    Poll poll;
    void *context;
    ActiveCopy *copy;
    /* a number per row, active ones first; slopes and dual vectors are over the costs */
    double *labels, *costs, *violation, *slopes, *centre, *combined, *last_change, *along, *spare;
    double intercept, width, objective, bound, combined_bound;
    double slope_sum, curvature, excess; /* sum c a, sum c a'(m), |gradient|^2 / 2 */
    double gram[N_DIRECTIONS][N_DIRECTIONS]; /* products of the directions */
    double along_weights[N_DIRECTIONS]; /* and of these with the weights less the dual weights of held-out rows */
    double pending[2]; /* of the directions descent and last: the step that the weights have yet to take, if any */
    int is_pending;
    double fixed_sum, fixed_imbalance, fixed_conjugate; /* of rows held out at the top: c a, y c a, k c a^2 / 2 */
    double goal, reach, typical_change, step_change; /* of margin violations: root mean squares */
    int has_started, has_last, has_combined, is_wide, is_interrupted;
    int seems_converged; /* and has said so */
    int n_active_sets;
    ActiveSet active_sets[MOST_ACTIVE_SETS];
    double mobility; /* how many times as far held-out rows have moved, at most */
    double first_width;
    int n_steps, n_steps_left;
    double gap_before; /* some steps ago */
    double n_read, n_since_poll;
    void *memory;
};

static inline double clipped(double a, double top)
{
    a = a > 0 ? a : 0;
    return a < top ? a : top;
}

/* evaluate.c: the current iterate. */

/* The relative gap, about. */
double relative_gap(const Solver *s);
/* The intercept at its best, slopes, gradient, objective and bound at the margin violations of the active rows. */
void evaluate(Solver *s);
/* The directions of the next step, where features or what is fixed have become others. */
void renew_directions(Solver *s);
/* Combine the slopes here with those that come. */
void restart_combination(Solver *s);
/* Bring the loss closer to the true one, around the slopes. */
void sharpen(Solver *s);

/* shrinking.c: active rows. */

/* Hold out rows whose slope stays at 0 or at the top, unless few of them are. */
void shrink(Solver *s);
/* Back to all rows, or to those of a set that still holds; 1 where the slope of any had changed unseen. */
int recheck(Solver *s, int all);

/* active_copy.c: products with the rows, and copies of the active ones. */

ActiveCopy *copy_new(const Csr *rows, const double *mean_squares);
void copy_free(ActiveCopy *copy);
/* Ask for an interrupt after some numbers; once there is one, nothing counts any more. */
void poll_interrupt(Solver *s, double n_numbers);
/* products[i] = -y_i x_i . vector for the rows from first to last. */
void times_rows(Solver *s, ptrdiff_t first, ptrdiff_t last, const double *vector, double *products);
/* sum += sign sum_i y_i c_i a_i x_i over the rows from first to last. */
void add_dual_weights(Solver *s, ptrdiff_t first, ptrdiff_t last, double sign, double *sum);
/* Go on with a copy of the active rows; 0 where that is not worth it. */
int copy_active_rows(Solver *s);
/* Before the first step: go on with a copy of all rows whose features are sorted, where that is worth it. */
void sort_features(Solver *s);
/* Back to the copy below, where all active rows are those of this one; its directions are to be renewed then. */
void pop_copy(Solver *s);
/* The same products, of gradient and last step as they are now. */
Absent absent_now(const ActiveCopy *copy);
/* A step of so many gradients downhill and so many last steps. */
void absent_step(ActiveCopy *copy, double t_descent, double t_last);
/* The weights of all features. */
void write_weights(const Solver *s, double *weights);
/* Which of all rows the one at i is. */
ptrdiff_t original_row(const Solver *s, ptrdiff_t i);

#endif
