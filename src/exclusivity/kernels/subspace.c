/* The subspace method: steps to the best point of a small subspace, over the active rows.

       f(w, b) = 1/2 |w|^2 + sum_i c_i phi(m_i),   m_i = 1 - y_i (x_i . w + b),
       phi(m) = max { a m - k a^2 / 2 : 0 <= a <= top }

   is the hinge (k = 0, top = 1), the squared hinge (k = 1/2, top = infinity) or the smooth hinge (k = 1, top = 1).
   What is minimised is this loss around a dual vector a0 (the augmented Lagrangian; width 0 leaves it as it is),

       max { a m - k a^2 / 2 - width (a - a0)^2 / 2 : 0 <= a <= top },   slope  a = clip((m + width a0) / (k + width)),

   a ramp. Its slopes are feasible for the dual of the true loss once the intercept is at its best, sum y c a = 0, and
   u = sum_i y_i c_i a_i x_i gives the gradient w - u and the bound D(a) = sum c a - 1/2 |u|^2 - k/2 sum c a^2. As soon
   as the gradient is a small share of the gap, a0 follows the slopes and the width shrinks.

   A step leads to the best point of w + span(gradient, last step), the intercept being a third direction. It costs one
   product with X and one with X^T: the margin violations along the last step are known, so that the loss at any point of
   the subspace is a sum over vectors of rows. On a quadratic these are the iterates of conjugate gradients; a loss made of
   ramps changes with every row that crosses a corner, and the search in the subspace takes that into account, which
   Newton-CG does at the end of each of its systems only. Bounds are taken at the best convex combination of all slopes met:
   D is concave, and along the segment from the combination to the new slopes a parabola.

   Rows whose slope is 0 or ``top`` and stays there are held out (shrinking.c), in nested active sets: active rows come first
   in all vectors. Rows held out at the top add a constant vector to u, and a loss that is linear, c top (m - k top / 2). They
   are checked again when the active rows have moved as far as they were away, or the gap has come down. */

#include "subspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* These and the constants of the other files were chosen on functions of Python packages, not on the texts of the
   benchmark (docs/research/solver-benchmark.md). */
#define FIRST_REACH 4.0 /* rows may move so many times as far as typical ones did in the last step */
/* The width shrinks where the gradient is to blame for no more than this share of the gap; less of it where the loss is
   sharp already, or features so many times as many as rows: dual variables then follow every small error of the scores. */
#define SETTLED 0.2
#define SETTLED_WELL 0.05
#define SHARP 0.01
#define WIDE 20
#define PATIENCE 100 /* so many steps have to halve the gap */
#define ENOUGH 0.1 /* the search ends where a step would bring this share of what the first one did */
#define MOST_SEARCHES 6
#define MOST_CUTS 8
#define OVERSHOT 0.5 /* steps are shortened while the slope at their end is more than this share of that before */
#define RIDGE 1e-13 /* keeps directions that are nearly the same apart */

enum { N_ROW_VECTORS = 9 };

/* ---- the step: Newton's method in the lengths of its three directions ---- */

/* Gradient and curvature of the loss at m + sum_j t_j z_j, over the active rows. */
FOR_MANY_PROCESSORS
static void search_sums(const Solver *s, const double t[N_DIRECTIONS], double gradient[N_DIRECTIONS],
                        double curvature[N_DIRECTIONS][N_DIRECTIONS])
{
    const double *m = s->violation, *y = s->labels, *c = s->costs, *centre = s->centre;
    const double *along = s->along, *last = s->last_change;
    const double width = s->width, top = s->task.top, scale = 1 / (s->task.stiffness + width);
    const double t_down = t[DESCENT], t_last = t[LAST], shift = t[INTERCEPT];
    double g_down = 0, g_last = 0, g_shift = 0;
    double dd = 0, dl = 0, ds = 0, ll = 0, ls = 0, ss = 0;
#pragma omp simd reduction(+ : g_down, g_last, g_shift, dd, dl, ds, ll, ls, ss)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        double d = along[i], l = last[i], moved = m[i] + t_down * d + t_last * l - shift * y[i];
        double a = (moved + width * centre[i]) * scale;
        double h = (a > 0) & (a < top) ? c[i] : 0, hd = h * d, hl = h * l;
        a = c[i] * clipped(a, top);
        g_down += a * d;
        g_last += a * l;
        g_shift -= a * y[i];
        dd += hd * d;
        dl += hd * l;
        ds -= hd * y[i];
        ll += hl * l;
        ls -= hl * y[i];
        ss += h;
    }
    gradient[DESCENT] = g_down;
    gradient[LAST] = g_last;
    gradient[INTERCEPT] = g_shift;
    curvature[DESCENT][DESCENT] = dd * scale;
    curvature[DESCENT][LAST] = curvature[LAST][DESCENT] = dl * scale;
    curvature[DESCENT][INTERCEPT] = curvature[INTERCEPT][DESCENT] = ds * scale;
    curvature[LAST][LAST] = ll * scale;
    curvature[LAST][INTERCEPT] = curvature[INTERCEPT][LAST] = ls * scale;
    curvature[INTERCEPT][INTERCEPT] = ss * scale;
}

/* The solution of a tiny positive semi-definite system in the first n unknowns, by Cholesky's method; 0 if none. */
static int solve(int n, double matrix[N_DIRECTIONS][N_DIRECTIONS], const double *right, double *solution)
{
    double scale[N_DIRECTIONS], factor[N_DIRECTIONS][N_DIRECTIONS];
    for (int i = 0; i < n; i++)
        scale[i] = matrix[i][i] > 0 ? sqrt(matrix[i][i]) : 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double rest = i == j ? 1 + RIDGE : matrix[i][j] / (scale[i] * scale[j]);
            for (int l = 0; l < j; l++)
                rest -= factor[i][l] * factor[j][l];
            if (i == j && !(rest > 0))
                return 0;
            factor[i][j] = i == j ? sqrt(rest) : rest / factor[j][j];
        }
    }
    for (int i = 0; i < n; i++) {
        solution[i] = right[i] / scale[i];
        for (int l = 0; l < i; l++)
            solution[i] -= factor[i][l] * solution[l];
        solution[i] /= factor[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int l = i + 1; l < n; l++)
            solution[i] -= factor[l][i] * solution[l];
        solution[i] /= factor[i][i];
    }
    for (int i = 0; i < n; i++)
        solution[i] /= scale[i];
    return 1;
}

/* A Newton step in the lengths of the directions that there are; what it gains by the model, 0 where there is none. */
static double newton_step(const Solver *s, double curvature[N_DIRECTIONS][N_DIRECTIONS],
                          const double gradient[N_DIRECTIONS], double step[N_DIRECTIONS])
{
    int directions[N_DIRECTIONS], n = 0;
    directions[n++] = DESCENT;
    if (s->has_last)
        directions[n++] = LAST;
    if (s->task.has_intercept)
        directions[n++] = INTERCEPT;
    double matrix[N_DIRECTIONS][N_DIRECTIONS], right[N_DIRECTIONS], solution[N_DIRECTIONS], gain = 0;
    for (int i = 0; i < n; i++) {
        right[i] = -gradient[directions[i]];
        for (int j = 0; j < n; j++)
            matrix[i][j] = s->gram[directions[i]][directions[j]] + curvature[directions[i]][directions[j]];
    }
    memset(step, 0, N_DIRECTIONS * sizeof(double));
    if (!solve(n, matrix, right, solution))
        return 0;
    for (int i = 0; i < n; i++) {
        step[directions[i]] = solution[i];
        gain += right[i] * solution[i];
    }
    return gain > 0 && gain < INFINITY ? gain : 0;
}

/* The lengths t of the best point of the subspace, nearly; all zero where nothing is to be gained. */
static void search_subspace(const Solver *s, double t[N_DIRECTIONS])
{
    double constant[N_DIRECTIONS] = {s->along_weights[DESCENT], s->along_weights[LAST], -s->fixed_imbalance};
    double gradient[N_DIRECTIONS], curvature[N_DIRECTIONS][N_DIRECTIONS], step[N_DIRECTIONS], moved[N_DIRECTIONS], first = 0;
    memset(t, 0, N_DIRECTIONS * sizeof(double));
    search_sums(s, t, gradient, curvature);
    for (int i = 0; i < N_DIRECTIONS; i++)
        gradient[i] += constant[i];
    for (int count = 0; count < MOST_SEARCHES; count++) {
        double length = 1, gain = newton_step(s, curvature, gradient, step);
        if (gain <= ENOUGH * first)
            return;
        first = gain > first ? gain : first;
        for (int cut = 0; cut < MOST_CUTS; cut++) {
            double at_end = 0;
            for (int i = 0; i < N_DIRECTIONS; i++)
                moved[i] = t[i] + length * step[i];
            search_sums(s, moved, gradient, curvature);
            for (int i = 0; i < N_DIRECTIONS; i++) {
                gradient[i] += constant[i];
                for (int j = 0; j < N_DIRECTIONS; j++)
                    gradient[i] += s->gram[i][j] * moved[j];
                at_end += gradient[i] * step[i];
            }
            if (at_end <= OVERSHOT * gain)
                break;
            length *= gain / (gain + at_end);
        }
        memcpy(t, moved, sizeof moved);
    }
}

/* Margin violations and intercept move there at once, the weights as soon as they are needed. */
FOR_MANY_PROCESSORS
static void move(Solver *s, const double t[N_DIRECTIONS])
{
    const double t_down = t[DESCENT], t_last = t[LAST], shift = t[INTERCEPT];
    double *m = s->violation, *z = s->last_change;
    const double *along = s->along, *y = s->labels;
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        z[i] = t_down * along[i] + t_last * z[i];
        double change = z[i] - shift * y[i];
        m[i] += change;
        square += change * change;
    }
    s->pending[DESCENT] = t_down;
    s->pending[LAST] = t_last;
    s->is_pending = 1;
    s->intercept += shift;
    s->has_last = 1;
    s->n_with_last = s->n_active;
    s->step_change = sqrt(square / (double)s->n_active);
    s->typical_change = s->step_change > s->typical_change / 2 || isinf(s->typical_change) ? s->step_change : s->typical_change / 2;
}

/* To the best point of the subspace; 0 where it is the iterate itself. */
static int take_step(Solver *s)
{
    double t[N_DIRECTIONS];
    times_rows(s, 0, s->n_active, s->copy->descent, s->along);
    if (s->has_last && s->n_with_last < s->n_active) /* of rows that were held out */
        times_rows(s, s->n_with_last, s->n_active, s->copy->last, s->last_change);
    search_subspace(s, t);
    if (t[DESCENT] == 0 && t[LAST] == 0 && t[INTERCEPT] == 0)
        return 0;
    move(s, t);
    evaluate(s);
    return 1;
}

/* ---- the loop ---- */

/* The loss comes closer to the true one where the gradient is to blame for little of the gap. */
static int is_settled(const Solver *s)
{
    double settled = s->width > SHARP && !s->is_wide ? SETTLED : SETTLED_WELL;
    return s->width > 0 && s->excess <= settled * fmax(s->objective - s->bound, 0);
}

/* One step more is counted; whether they still come to something. */
static int is_patient(Solver *s)
{
    s->n_steps_left--;
    s->n_steps = (s->n_steps + 1) % PATIENCE; /* however many there are in all */
    if (s->n_steps != 0)
        return 1;
    double before = s->gap_before;
    s->gap_before = relative_gap(s);
    return s->gap_before <= before / 2;
}

static void start(Solver *s)
{
    int is_elsewhere = 0; /* than at zero */
    for (ptrdiff_t j = 0; j < s->copy->rows.n_features; j++)
        is_elsewhere |= s->copy->weights[j] != 0;
    if (is_elsewhere)
        times_rows(s, 0, s->n_rows, s->copy->weights, s->violation);
    for (ptrdiff_t i = 0; i < s->n_rows; i++)
        s->violation[i] += 1 - s->labels[i] * s->intercept;
    evaluate(s);
    s->has_started = 1;
}

Ending solver_advance(Solver *s, double goal, int most_steps)
{
    s->goal = goal;
    s->n_steps_left = most_steps;
    if (!s->has_started)
        start(s);
    while (!s->is_interrupted) {
        if (relative_gap(s) <= goal) {
            if (s->n_active_sets == 0)
                return CONVERGED;
            s->seems_converged = !s->seems_converged;
            if (s->seems_converged)
                return SEEMS_CONVERGED;
            recheck(s, 1); /* the caller's certificate says that it is not so */
            continue;
        }
        if (s->n_steps_left <= 0)
            return STEP_LIMIT;
        if (!is_patient(s))
            return STALLED;
        if (is_settled(s)) {
            sharpen(s);
            continue;
        }
        int has_moved = take_step(s);
        if (!has_moved && s->n_active_sets > 0) {
            if (recheck(s, 1))
                continue;
            has_moved = take_step(s);
        }
        if (has_moved) {
            for (int i = 0; i < s->n_active_sets; i++)
                s->active_sets[i].drift += s->step_change;
            recheck(s, 0);
            if (relative_gap(s) > goal)
                shrink(s);
        } else if (s->width > 0) {
            sharpen(s);
        } else {
            return STALLED;
        }
    }
    return INTERRUPTED;
}

int solver_is_interrupted(const Solver *s)
{
    return s->is_interrupted;
}

Iterate solver_iterate(const Solver *s)
{
    double passes = s->n_read / (2 * fmax(s->n_numbers, 1));
    double bound = s->bound > s->combined_bound ? s->bound : s->combined_bound;
    return (Iterate){s->intercept, s->width, s->objective, bound, sqrt(2 * s->excess), passes};
}

void solver_write(const Solver *s, double *weights, double *slopes, double *dual)
{
    const double *best = s->bound > s->combined_bound ? s->slopes : s->combined;
    write_weights(s, weights);
    for (ptrdiff_t i = 0; i < s->n_rows; i++) {
        ptrdiff_t row = original_row(s, i);
        slopes[row] = s->slopes[i];
        dual[row] = best[i];
    }
}

Solver *solver_new(const Csr *rows, Task task, const double *labels, const double *costs, const double *weights,
                   const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
                   void *context)
{
    size_t n = (size_t)rows->n_rows;
    Solver *s = calloc(1, sizeof *s);
    double *memory = s == NULL ? NULL : calloc(N_ROW_VECTORS * n + 1, sizeof(double));
    ActiveCopy *copy = memory == NULL ? NULL : copy_new(rows, mean_squares);
    if (copy == NULL) {
        free(memory);
        free(s);
        return NULL;
    }
    double **vectors[] = {&s->labels,   &s->costs,       &s->violation, &s->slopes, &s->centre,
                          &s->combined, &s->last_change, &s->along,     &s->spare};
    for (size_t v = 0; v < N_ROW_VECTORS; v++)
        *vectors[v] = memory + v * n;
    s->n_rows = s->n_active = rows->n_rows;
    s->n_numbers = (double)csr_size(rows, copy->which, rows->n_rows);
    s->task = task;
    s->poll = poll;
    s->context = context;
    s->copy = copy;
    s->memory = memory;
    s->intercept = intercept;
    s->width = width;
    s->goal = 1;
    s->is_wide = rows->n_features > WIDE * rows->n_rows;
    s->reach = FIRST_REACH;
    s->mobility = 1;
    s->first_width = width;
    s->typical_change = s->gap_before = INFINITY;
    memcpy(s->labels, labels, n * sizeof(double));
    memcpy(s->costs, costs, n * sizeof(double));
    memcpy(s->centre, centre, n * sizeof(double));
    memcpy(copy->weights, weights, (size_t)rows->n_features * sizeof(double));
    sort_features(s);
    return s;
}

void solver_free(Solver *s)
{
    if (s == NULL)
        return;
    copy_free(s->copy);
    free(s->memory);
    free(s);
}
