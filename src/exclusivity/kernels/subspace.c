/* The subspace method for linear SVMs over sparse rows, with shrinking.

       f(w, b) = 1/2 |w|^2 + sum_i c_i phi(m_i),   m_i = 1 - y_i (x_i . w + b),
       phi(m) = max { a m - k a^2 / 2 : 0 <= a <= top }

   is the hinge (k = 0, top = 1), the squared hinge (k = 1/2, top = infinity) or the smooth hinge (k = 1, top = 1).
   What is minimised is this loss around a dual vector a0 (the augmented Lagrangian; width 0 leaves it as it is),

       max { a m - k a^2 / 2 - width (a - a0)^2 / 2 : 0 <= a <= top },   slope  a = clip((m + width a0) / (k + width)),

   a ramp. Its slopes are feasible for the dual of the true loss once the intercept is at its best, sum y c a = 0, and
   u = sum_i y_i c_i a_i x_i gives the gradient w - u and the bound D(a) = sum c a - 1/2 |u|^2 - k/2 sum c a^2. As soon
   as the gradient is a small share of the gap, a0 follows the slopes and the width shrinks.

   A step leads to the best point of w + span(gradient, last step), the intercept being a third direction. It costs one
   product with X and one with X^T: the margin violations along the last step are known, so that the loss at any point
   of the subspace is a sum over vectors of rows. On a quadratic these are the iterates of conjugate gradients; a loss
   made of ramps changes with every row that crosses a corner, and the search in the subspace takes that into account,
   which Newton-CG does at the end of each of its systems only. Bounds are taken at the best convex combination of all
   slopes met: D is concave, and along the segment from the combination to the new slopes a parabola.

   Shrinking: rows whose slope is 0 or ``top`` and seems to stay there are held out, so that steps read the active set
   only; active rows come first in all vectors. Rows held out at the top add a constant vector to u, and a loss that is
   linear, c top (m - k top / 2). How far the margins of active rows have moved since (the drift) bounds about how far
   those held out have: beyond a trust radius, where the gap has come down, and before the run ends, all rows are
   checked and are active again. */

#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Loops over vectors are compiled twice where the loader can choose between them as the program starts: for any
   processor, and for those with vectors of four doubles, on which a fit takes two thirds of the time. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#define FOR_MANY_PROCESSORS __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_MANY_PROCESSORS
#endif

/* These constants were chosen on functions of Python packages, not on the texts of the benchmark
   (docs/research/solver-benchmark.md). */
#define POLL_NUMBERS (1 << 23) /* read between two polls: some hundredths of a second */
#define PATIENCE 100 /* so many steps have to halve the gap */

/* The search in the subspace. */
#define ENOUGH 0.1 /* it ends where a step would bring this share of what the first one did */
#define MOST_SEARCHES 6
#define MOST_CUTS 8
#define OVERSHOT 0.5 /* steps are shortened while the slope at their end is more than this share of that before */
#define RIDGE 1e-13 /* keeps directions that are nearly the same apart */

/* The best intercept. */
#define MOST_SHIFTS 100
#define IMBALANCE 1e-3 /* of the classes, as a share of the gap */

/* The width shrinks where the gradient is to blame for no more than this share of the gap; less of it where the loss is
   sharp already, or features so many times as many as rows: dual variables then follow every small error of the
   scores. */
#define SETTLED 0.2
#define SETTLED_WELL 0.05
#define SHARP 0.01
#define WIDE 20
#define NARROWER 0.5
#define LEAST_WIDTH 1e-12

/* Shrinking. */
#define FEWEST_ROWS 500 /* below so many nothing is held out */
#define MOST_ACTIVE 0.5 /* rows are held out where at most this share stays */
#define RECHECK 0.01 /* rows held out are checked where the gap has come down to this share */
#define NEAR 3.0 /* a gap above which rows come and go as they like */
#define FIRST_REACH 4.0 /* rows may move so many times as far as typical ones did in the last step */
#define MOST_REACH 32.0
/* Where one or two words nearly separate a small class, rows held out move many times as far as active ones: hundreds
   of them turn up on the wrong side, and the loss is too sharp for what is a new problem. From this share of the active
   rows on its width is multiplied by WIDEN, and rows held out are checked that much sooner: on the sampled classes of
   word pairs at C = 10 that takes about a third of the passes or less. */
#define SURPRISE 0.005
#define WIDEN 4.0
#define MOST_MOBILITY 16.0

/* The directions of a step; where there is no intercept, the first two. */
enum { DESCENT, LAST, INTERCEPT, N_DIRECTIONS };

enum { N_ROW_VECTORS = 9, N_FEATURE_VECTORS = 7 };

struct Solver {
    Csr rows;
    Task task;
    Poll poll;
    void *context;
    /* a number per row, active ones first; slopes and dual vectors are over the costs */
    double *labels, *costs, *violation, *slopes, *centre, *combined, *last_change, *along, *spare;
    ptrdiff_t *which, *order; /* where the rows are in X */
    /* a number per feature; the weights of the slopes, of their best combination, of rows held out at the top */
    double *weights, *dual_weights, *combined_weights, *fixed_weights, *descent, *last, *mean_squares;
    const double *squares_of_all; /* rows; NULL: no preconditioner, and mean squares of zero */
    double intercept, width, first_width, objective, bound, combined_bound;
    double slope_sum, curvature, excess; /* sum c a, sum c a'(m), |gradient|^2 / 2 */
    double gram[N_DIRECTIONS][N_DIRECTIONS]; /* products of the directions */
    double along_gradient[2]; /* and of the first two with the gradient w - u */
    /* the active set */
    ptrdiff_t n_active, n_with_last; /* rows whose margin violations along the last step are known */
    double fixed_sum, fixed_imbalance, fixed_conjugate; /* of rows held out at the top: c a, y c a, k c a^2 / 2 */
    double reach, typical_change, step_change; /* of margin violations: root mean squares */
    double mobility; /* how many times as far held-out rows have moved, at most */
    double trust_radius, drift; /* how far margins of active rows may move, and have moved, since rows are held out */
    double gap_at_shrinking, gap_before; /* some steps ago */
    double goal, n_read, n_since_poll;
    int has_started, has_combined, is_wide, is_interrupted, n_steps;
    double *memory;
    ptrdiff_t *indices;
};

static double clipped(double a, double top)
{
    a = a > 0 ? a : 0;
    return a < top ? a : top;
}

static double best_bound(const Solver *s)
{
    return s->bound > s->combined_bound ? s->bound : s->combined_bound;
}

/* The relative gap, about. */
static double relative_gap(const Solver *s)
{
    return s->objective > 0 ? (s->objective - best_bound(s)) / s->objective : s->objective - best_bound(s);
}

/* ---- products with the rows ---- */

/* Ask for an interrupt after some numbers; once there is one, nothing counts any more. */
static void poll_interrupt(Solver *s, double n_numbers)
{
    s->n_since_poll += n_numbers;
    if (s->n_since_poll >= POLL_NUMBERS && !s->is_interrupted) {
        s->n_since_poll = 0;
        s->is_interrupted = s->poll(s->context) != 0;
    }
}

static void note_read(Solver *s, ptrdiff_t n_read)
{
    s->n_read += (double)n_read;
    poll_interrupt(s, (double)n_read);
}

/* How many of so many rows to read before the next poll. */
static ptrdiff_t some_rows(const Solver *s, ptrdiff_t n)
{
    ptrdiff_t most = 1 + POLL_NUMBERS / (1 + s->rows.n_numbers / s->rows.n_rows);
    return n < most ? n : most;
}

/* products[i] = -y_i x_i . vector for the rows from first to last. */
static void times_rows(Solver *s, ptrdiff_t first, ptrdiff_t last, const double *vector, double *products)
{
    for (ptrdiff_t at = first, n; at < last && !s->is_interrupted; at += n) {
        n = some_rows(s, last - at);
        note_read(s, csr_times(&s->rows, s->which + at, n, vector, products + at));
    }
    for (ptrdiff_t i = first; i < last; i++)
        products[i] *= -s->labels[i];
}

/* sum += sum_i spare[i] x_i over the rows from first to last, or x_i^2. */
static void add_rows(Solver *s, ptrdiff_t first, ptrdiff_t last, int are_squares, double *sum)
{
    for (ptrdiff_t at = first, n; at < last && !s->is_interrupted; at += n) {
        n = some_rows(s, last - at);
        note_read(s, (are_squares ? csr_add_squares : csr_add)(&s->rows, s->which + at, n, s->spare + at, sum));
    }
}

/* sum += sum_i y_i c_i a_i x_i over the rows from first to last. */
static void add_dual_weights(Solver *s, ptrdiff_t first, ptrdiff_t last, double *sum)
{
    for (ptrdiff_t i = first; i < last; i++)
        s->spare[i] = s->labels[i] * s->costs[i] * s->slopes[i];
    add_rows(s, first, last, 0, sum);
}

/* ---- the current iterate: intercept, slopes, gradient, objective, and the best bound so far ---- */

typedef struct {
    double imbalance, sum, curvature; /* sums of y c a, c a, c a'(m) */
} Balance;

/* With all margin violations lowered by y times the shift; active rows only. */
FOR_MANY_PROCESSORS
static Balance balance_at(const Solver *s, double shift)
{
    const double *m = s->violation, *y = s->labels, *c = s->costs, *centre = s->centre;
    const double width = s->width, top = s->task.top, scale = 1 / (s->task.stiffness + width);
    double imbalance = 0, sum = 0, curvature = 0;
#pragma omp simd reduction(+ : imbalance, sum, curvature)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        double a = (m[i] - shift * y[i] + width * centre[i]) * scale;
        curvature += (a > 0) & (a < top) ? c[i] : 0;
        a = c[i] * clipped(a, top);
        imbalance += y[i] * a;
        sum += a;
    }
    return (Balance){imbalance + s->fixed_imbalance, sum + s->fixed_sum, curvature * scale};
}

/* The change of the intercept that balances the classes, by safeguarded Newton steps (Python: ``balanced``). */
static double best_shift(const Solver *s)
{
    /* Below that, a sum of so many numbers says nothing. */
    double rest = 4 * DBL_EPSILON * sqrt((double)s->rows.n_rows);
    rest = fmax(rest, IMBALANCE * (s->has_combined ? fmax(relative_gap(s), s->goal) : 1));
    double low = -INFINITY, high = INFINITY, shift = 0, reach = 1, best = 0, least = INFINITY;
    for (int count = 0; count < MOST_SHIFTS; count++) {
        Balance here = balance_at(s, shift);
        if (fabs(here.imbalance) < least) {
            least = fabs(here.imbalance);
            best = shift;
        }
        if (fabs(here.imbalance) <= rest * here.sum || !isfinite(here.imbalance))
            break;
        if (here.imbalance > 0)
            low = shift;
        else
            high = shift;
        int is_bracketed = isfinite(low) && isfinite(high);
        double step = here.curvature > 0 ? here.imbalance / here.curvature : INFINITY;
        if (!(fabs(step) <= reach && low < shift + step && shift + step < high))
            step = is_bracketed ? (low + high) / 2 - shift : copysign(reach, here.imbalance);
        if (shift + step == low || shift + step == high)
            break;
        shift += step;
        reach = is_bracketed ? fabs(step) / 2 : 4 * reach;
    }
    return best;
}

typedef struct {
    double loss, conjugate; /* sums of c phi(m) and c a^2 */
    double step, along, square; /* from the combination to the slopes: sums of c da, c da a, c da^2 */
} RowSums;

/* The slopes after a change of the intercept, and sums over the active rows. */
FOR_MANY_PROCESSORS
static RowSums take_slopes(Solver *s, double shift)
{
    double *m = s->violation, *slopes = s->slopes;
    const double *y = s->labels, *c = s->costs, *centre = s->centre, *combined = s->combined;
    const double stiffness = s->task.stiffness, width = s->width, top = s->task.top, scale = 1 / (stiffness + width);
    const double corner = isinf(top) ? INFINITY : stiffness * top, half = stiffness > 0 ? 0.5 / stiffness : 0;
    const double steepest = isinf(top) ? 0 : top; /* nothing is beyond an infinite corner */
    double sum = 0, curvature = 0, loss = 0, conjugate = 0, step = 0, along = 0, square = 0;
#pragma omp simd reduction(+ : sum, curvature, loss, conjugate, step, along, square)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        m[i] -= shift * y[i];
        double lost = m[i] > 0 ? m[i] : 0, inside = lost < corner ? lost : corner;
        double a = (m[i] + width * centre[i]) * scale;
        curvature += (a > 0) & (a < top) ? c[i] : 0;
        slopes[i] = a = clipped(a, top);
        double da = a - combined[i];
        sum += c[i] * a;
        loss += c[i] * (half * inside * inside + steepest * (lost - inside));
        conjugate += c[i] * a * a;
        step += c[i] * da;
        along += c[i] * da * combined[i];
        square += c[i] * da * da;
    }
    s->intercept += shift;
    s->curvature = curvature * scale;
    s->slope_sum = sum + s->fixed_sum;
    return (RowSums){loss, conjugate, step, along, square};
}

typedef struct {
    double weights, dual_weights, gradient; /* |w|^2, |u|^2, |w - u|^2 */
    double along, square; /* from the combination: v . (u - v), |u - v|^2 */
    double fixed; /* w . sum of y c a x over the rows held out at the top */
} FeatureSums;

/* Move the weights by t[DESCENT] times the descent and t[LAST] times the last step (NULL: not at all), and compute the
   direction of descent anew: minus the gradient, each feature over 1 + its curvature where there is a preconditioner.
   All sums are taken in the same loop: vectors of a million features take longer to read than to add up. */
FOR_MANY_PROCESSORS
static FeatureSums move_weights(Solver *s, const double *t)
{
    const double *u = s->dual_weights, *combined = s->combined_weights, *fixed = s->fixed_weights;
    const double *squares = s->mean_squares, curvature = s->curvature;
    const int moves = t != NULL; /* a step of zero would not do where directions are infinite */
    const double t_down = moves ? t[DESCENT] : 0, t_last = moves ? t[LAST] : 0;
    double *w = s->weights, *last = s->last, *descent = s->descent;
    double ww = 0, uu = 0, gg = 0, along = 0, square = 0, dd = 0, dl = 0, ll = 0, gd = 0, gl = 0, fw = 0;
#pragma omp simd reduction(+ : ww, uu, gg, along, square, dd, dl, ll, gd, gl, fw)
    for (ptrdiff_t j = 0; j < s->rows.n_features; j++) {
        double step = moves ? t_down * descent[j] + t_last * last[j] : last[j], weight = moves ? w[j] + step : w[j];
        double gradient = weight - u[j], away = u[j] - combined[j], down = -gradient / (1 + curvature * squares[j]);
        ww += weight * weight;
        uu += u[j] * u[j];
        gg += gradient * gradient;
        along += combined[j] * away;
        square += away * away;
        dd += down * down;
        dl += down * step;
        ll += step * step;
        gd += gradient * down;
        gl += gradient * step;
        fw += fixed[j] * weight;
        w[j] = weight;
        last[j] = step;
        descent[j] = down;
    }
    poll_interrupt(s, (double)s->rows.n_features);
    s->gram[DESCENT][DESCENT] = dd;
    s->gram[DESCENT][LAST] = s->gram[LAST][DESCENT] = dl;
    s->gram[LAST][LAST] = ll;
    s->along_gradient[DESCENT] = gd;
    s->along_gradient[LAST] = gl;
    return (FeatureSums){ww, uu, gg, along, square, fw};
}

/* Combine the slopes here with those that come. */
static void restart_combination(Solver *s)
{
    memcpy(s->combined, s->slopes, (size_t)s->rows.n_rows * sizeof(double));
    memcpy(s->combined_weights, s->dual_weights, (size_t)s->rows.n_features * sizeof(double));
    s->combined_bound = s->bound;
    s->has_combined = 1;
}

/* start + share (end - start), in place. */
FOR_MANY_PROCESSORS
static void combine(double *start, const double *end, double share, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        start[j] += share * (end[j] - start[j]);
}

/* D is a parabola along the segment from the combination to the slopes. */
static void update_combination(Solver *s, RowSums rows, FeatureSums features)
{
    double slope = rows.step - s->task.stiffness * rows.along - features.along;
    double curvature = s->task.stiffness * rows.square + features.square;
    if (s->has_combined && slope > 0 && slope < curvature) {
        double share = slope / curvature;
        combine(s->combined, s->slopes, share, s->n_active);
        combine(s->combined_weights, s->dual_weights, share, s->rows.n_features);
        s->combined_bound += share * slope / 2;
    } else if (!s->has_combined || slope > 0 || s->bound > s->combined_bound) {
        restart_combination(s);
    }
}

/* At the margin violations of the active rows; the weights have yet to move by this step, if any. */
static void evaluate(Solver *s, const double *t)
{
    RowSums rows = take_slopes(s, s->task.has_intercept ? best_shift(s) : 0.0);
    memcpy(s->dual_weights, s->fixed_weights, (size_t)s->rows.n_features * sizeof(double));
    add_dual_weights(s, 0, s->n_active, s->dual_weights);
    FeatureSums features = move_weights(s, t);
    double of_fixed = s->fixed_sum - s->intercept * s->fixed_imbalance - s->fixed_conjugate - features.fixed;
    s->excess = features.gradient / 2;
    s->objective = features.weights / 2 + rows.loss + (s->fixed_sum > 0 ? of_fixed : 0); /* not 0 times infinity */
    s->bound = s->slope_sum - features.dual_weights / 2 - s->task.stiffness * rows.conjugate / 2 - s->fixed_conjugate;
    update_combination(s, rows, features);
}

/* ---- the step: Newton's method in the lengths of its directions ---- */

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
    const double sums[N_DIRECTIONS][N_DIRECTIONS] = {{dd, dl, ds}, {dl, ll, ls}, {ds, ls, ss}};
    for (int i = 0; i < N_DIRECTIONS; i++)
        for (int j = 0; j < N_DIRECTIONS; j++)
            curvature[i][j] = sums[i][j] * scale;
    gradient[DESCENT] = g_down;
    gradient[LAST] = g_last;
    gradient[INTERCEPT] = g_shift;
}

/* The Newton step in the first n directions, by Cholesky's method; what it gains by the model, 0 if nothing. */
static double newton_step(int n, double hessian[N_DIRECTIONS][N_DIRECTIONS], const double gradient[N_DIRECTIONS],
                          double step[N_DIRECTIONS])
{
    double scale[N_DIRECTIONS], factor[N_DIRECTIONS][N_DIRECTIONS], gain = 0;
    for (int i = 0; i < n; i++)
        scale[i] = hessian[i][i] > 0 ? sqrt(hessian[i][i]) : 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double rest = i == j ? 1 + RIDGE : hessian[i][j] / (scale[i] * scale[j]);
            for (int l = 0; l < j; l++)
                rest -= factor[i][l] * factor[j][l];
            if (i == j && !(rest > 0))
                return 0;
            factor[i][j] = i == j ? sqrt(rest) : rest / factor[j][j];
        }
    }
    for (int i = 0; i < n; i++) {
        step[i] = -gradient[i] / scale[i];
        for (int l = 0; l < i; l++)
            step[i] -= factor[i][l] * step[l];
        step[i] /= factor[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int l = i + 1; l < n; l++)
            step[i] -= factor[l][i] * step[l];
        step[i] /= factor[i][i];
    }
    for (int i = 0; i < n; i++) {
        step[i] /= scale[i];
        gain -= gradient[i] * step[i];
    }
    return gain > 0 && gain < INFINITY ? gain : 0;
}

/* The lengths t of the best point of the subspace, nearly; all zero where nothing is to be gained. */
static void search_subspace(const Solver *s, double t[N_DIRECTIONS])
{
    int n = s->task.has_intercept ? N_DIRECTIONS : INTERCEPT;
    double gradient[N_DIRECTIONS], hessian[N_DIRECTIONS][N_DIRECTIONS], constant[N_DIRECTIONS];
    double step[N_DIRECTIONS] = {0}, moved[N_DIRECTIONS], first = 0;
    memset(t, 0, N_DIRECTIONS * sizeof(double));
    search_sums(s, t, gradient, hessian);
    for (int i = 0; i < INTERCEPT; i++) { /* the gradient here is known */
        constant[i] = s->along_gradient[i] - gradient[i];
        gradient[i] = s->along_gradient[i];
    }
    constant[INTERCEPT] = -s->fixed_imbalance;
    gradient[INTERCEPT] += constant[INTERCEPT];
    for (int count = 0; count < MOST_SEARCHES; count++) {
        for (int i = 0; i < N_DIRECTIONS; i++)
            for (int j = 0; j < N_DIRECTIONS; j++)
                hessian[i][j] += s->gram[i][j];
        double length = 1, gain = newton_step(n, hessian, gradient, step);
        if (gain <= ENOUGH * first)
            return;
        first = gain > first ? gain : first;
        for (int cut = 0; cut < MOST_CUTS; cut++) {
            double at_end = 0;
            for (int i = 0; i < N_DIRECTIONS; i++)
                moved[i] = t[i] + length * step[i];
            search_sums(s, moved, gradient, hessian);
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

/* Margin violations and intercept move by such a step. */
FOR_MANY_PROCESSORS
static void move_violations(Solver *s, const double t[N_DIRECTIONS])
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
    s->intercept += shift;
    s->n_with_last = s->n_active;
    s->step_change = sqrt(square / (double)s->n_active);
    s->typical_change = s->step_change > s->typical_change / 2 ? s->step_change : s->typical_change / 2;
}

/* To the best point of the subspace; 0 where it is the iterate itself. */
static int take_step(Solver *s)
{
    double t[N_DIRECTIONS];
    times_rows(s, 0, s->n_active, s->descent, s->along);
    times_rows(s, s->n_with_last, s->n_active, s->last, s->last_change); /* of rows that were held out */
    search_subspace(s, t);
    if (t[DESCENT] == 0 && t[LAST] == 0 && t[INTERCEPT] == 0)
        return 0;
    move_violations(s, t);
    evaluate(s, t);
    return 1;
}

/* ---- shrinking ---- */

/* Active rows whose slope may change, and then the others; how many of the first there are. Every row is written to
   both ends of what is free, and over it the next one: a processor cannot guess which it is. */
FOR_MANY_PROCESSORS
static ptrdiff_t order_rows(const Solver *s, double far)
{
    const double *violation = s->violation, *centre = s->centre, width = s->width;
    const double end = s->task.top * (s->task.stiffness + width); /* of the ramp */
    ptrdiff_t n_kept = 0, *order = s->order;
    for (ptrdiff_t i = 0; i < s->rows.n_rows; i++) {
        double m = violation[i] + width * centre[i];
        order[n_kept] = order[s->rows.n_rows - 1 - (i - n_kept)] = i;
        n_kept += (m + far > 0) & (m - far < end);
    }
    return n_kept;
}

/* The mean square of every feature over the active rows, by their costs: held-out rows have no curvature. */
static void take_squares(Solver *s)
{
    double cost = 0;
    if (s->squares_of_all == NULL)
        return;
    for (ptrdiff_t i = 0; i < s->n_active; i++)
        cost += s->costs[i];
    for (ptrdiff_t i = 0; i < s->n_active; i++)
        s->spare[i] = s->costs[i] / cost;
    memset(s->mean_squares, 0, (size_t)s->rows.n_features * sizeof(double));
    add_rows(s, 0, s->n_active, 1, s->mean_squares);
}

/* Hold out rows whose slope stays at 0 or at the top, unless few of them are. */
static void shrink(Solver *s)
{
    ptrdiff_t n = s->rows.n_rows, n_kept, *order = s->order;
    double far = s->reach * s->typical_change;
    int differs = 0;
    if (n < FEWEST_ROWS || s->n_active < n || !isfinite(far) || relative_gap(s) > NEAR)
        return;
    n_kept = order_rows(s, far);
    if (n_kept == 0 || (double)n_kept > MOST_ACTIVE * (double)n)
        return;
    ptrdiff_t n_with_last = 0;
    while (n_with_last < n_kept && order[n_with_last] < s->n_with_last)
        n_with_last++;
    s->n_with_last = n_with_last;
    double **vectors[] = {&s->labels, &s->costs, &s->violation, &s->slopes, &s->centre, &s->combined, &s->last_change};
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        double *from = *vectors[v];
        for (ptrdiff_t i = 0; i < n; i++)
            s->spare[i] = from[order[i]];
        *vectors[v] = s->spare;
        s->spare = from;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        order[i] = s->which[order[i]];
    s->order = s->which;
    s->which = order;
    s->n_active = n_kept;
    for (ptrdiff_t i = n_kept; i < n; i++) {
        double a = s->costs[i] * s->slopes[i];
        s->fixed_sum += a;
        s->fixed_imbalance += s->labels[i] * a;
        s->fixed_conjugate += s->task.stiffness * a * s->slopes[i] / 2;
        differs |= s->combined[i] != s->slopes[i];
    }
    add_dual_weights(s, n_kept, n, s->fixed_weights);
    take_squares(s);
    if (differs) /* convex combinations would move rows that are held out */
        restart_combination(s);
    s->trust_radius = far / s->mobility;
    s->drift = 0;
    s->gap_at_shrinking = relative_gap(s);
}

/* Back to all rows; 1 where the slope of any had changed unseen. */
static int recheck(Solver *s)
{
    double scale = 1 / (s->task.stiffness + s->width), farthest = 0; /* of rows whose slope has changed unseen */
    ptrdiff_t n = s->rows.n_rows, first = s->n_active, n_moved = 0;
    if (first == n)
        return 0;
    s->n_active = n;
    s->fixed_sum = s->fixed_imbalance = s->fixed_conjugate = 0;
    memset(s->fixed_weights, 0, (size_t)s->rows.n_features * sizeof(double));
    if (s->squares_of_all != NULL)
        memcpy(s->mean_squares, s->squares_of_all, (size_t)s->rows.n_features * sizeof(double));
    memcpy(s->along + first, s->violation + first, (size_t)(n - first) * sizeof(double));
    times_rows(s, first, n, s->weights, s->violation);
    for (ptrdiff_t i = first; i < n; i++) {
        s->violation[i] += 1 - s->labels[i] * s->intercept;
        if (clipped((s->violation[i] + s->width * s->centre[i]) * scale, s->task.top) != s->slopes[i]) {
            farthest = fmax(farthest, fabs(s->violation[i] - s->along[i]));
            n_moved++;
        }
    }
    if (n_moved == 0)
        return 0;
    s->reach = fmin(2 * s->reach, MOST_REACH);
    if (s->drift > 0)
        s->mobility = fmin(fmax(s->mobility, farthest / s->drift), MOST_MOBILITY);
    if ((double)n_moved > SURPRISE * (double)first && s->width > 0)
        s->width = fmin(WIDEN * s->width, s->first_width);
    evaluate(s, NULL);
    return 1;
}

/* ---- the loop ---- */

/* The gradient is to blame for little of the gap. */
static int is_settled(const Solver *s)
{
    double settled = s->width > SHARP && !s->is_wide ? SETTLED : SETTLED_WELL;
    return s->width > 0 && s->excess <= settled * fmax(s->objective - s->bound, 0);
}

/* Bring the loss closer to the true one, around the slopes; held-out rows stay where they are. */
static void sharpen(Solver *s)
{
    memcpy(s->centre, s->slopes, (size_t)s->rows.n_rows * sizeof(double));
    s->width = fmax(NARROWER * s->width, LEAST_WIDTH);
    evaluate(s, NULL);
}

/* One step more is counted; whether they still come to something. */
static int is_patient(Solver *s)
{
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
    for (ptrdiff_t j = 0; j < s->rows.n_features; j++)
        is_elsewhere |= s->weights[j] != 0;
    if (is_elsewhere)
        times_rows(s, 0, s->rows.n_rows, s->weights, s->violation);
    for (ptrdiff_t i = 0; i < s->rows.n_rows; i++)
        s->violation[i] += 1 - s->labels[i] * s->intercept;
    evaluate(s, NULL);
    s->has_started = 1;
}

Ending solver_advance(Solver *s, double goal, int most_steps)
{
    s->goal = goal;
    if (!s->has_started)
        start(s);
    while (!s->is_interrupted) {
        if (relative_gap(s) <= goal) {
            if (s->n_active == s->rows.n_rows)
                return CONVERGED;
            recheck(s);
            continue;
        }
        if (most_steps <= 0)
            return STEP_LIMIT;
        most_steps--;
        if (!is_patient(s))
            return STALLED;
        if (is_settled(s)) {
            sharpen(s);
            continue;
        }
        int has_moved = take_step(s);
        if (!has_moved && recheck(s))
            continue;
        if (has_moved) {
            s->drift += s->step_change;
            if (s->drift > s->trust_radius || relative_gap(s) <= RECHECK * s->gap_at_shrinking)
                recheck(s);
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
    double passes = s->n_read / (2 * fmax((double)s->rows.n_numbers, 1));
    return (Iterate){s->intercept, s->width, s->objective, best_bound(s), sqrt(2 * s->excess), passes};
}

void solver_write(const Solver *s, double *weights, double *slopes, double *dual)
{
    const double *best = s->bound > s->combined_bound ? s->slopes : s->combined;
    memcpy(weights, s->weights, (size_t)s->rows.n_features * sizeof(double));
    for (ptrdiff_t i = 0; i < s->rows.n_rows; i++) {
        slopes[s->which[i]] = s->slopes[i];
        dual[s->which[i]] = best[i];
    }
}

Solver *solver_new(const Csr *rows, Task task, const double *labels, const double *costs, const double *weights,
                   const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
                   void *context)
{
    size_t n = (size_t)rows->n_rows, m = (size_t)rows->n_features;
    Solver *s = calloc(1, sizeof *s);
    double *memory = calloc(N_ROW_VECTORS * n + N_FEATURE_VECTORS * m + 1, sizeof(double));
    ptrdiff_t *indices = calloc(2 * n, sizeof *indices);
    if (s == NULL || memory == NULL || indices == NULL) {
        free(s);
        free(memory);
        free(indices);
        return NULL;
    }
    *s = (Solver){
        .rows = *rows,
        .task = task,
        .poll = poll,
        .context = context,
        .intercept = intercept,
        .width = width,
        .first_width = width,
        .n_active = rows->n_rows,
        .n_with_last = rows->n_rows,
        .reach = FIRST_REACH,
        .mobility = 1,
        .gap_before = INFINITY,
        .goal = 1,
        .is_wide = rows->n_features > WIDE * rows->n_rows,
        .memory = memory,
        .indices = indices,
        .which = indices,
        .order = indices + n,
    };
    double **of_rows[N_ROW_VECTORS] = {&s->labels,   &s->costs,       &s->violation, &s->slopes, &s->centre,
                                       &s->combined, &s->last_change, &s->along,     &s->spare};
    double **of_features[N_FEATURE_VECTORS] = {&s->weights, &s->dual_weights, &s->combined_weights, &s->fixed_weights,
                                               &s->descent, &s->last,         &s->mean_squares};
    for (int v = 0; v < N_ROW_VECTORS; v++, memory += n)
        *of_rows[v] = memory;
    for (int v = 0; v < N_FEATURE_VECTORS; v++, memory += m)
        *of_features[v] = memory;
    for (size_t i = 0; i < n; i++)
        s->which[i] = (ptrdiff_t)i;
    memcpy(s->labels, labels, n * sizeof(double));
    memcpy(s->costs, costs, n * sizeof(double));
    memcpy(s->centre, centre, n * sizeof(double));
    memcpy(s->weights, weights, m * sizeof(double));
    s->squares_of_all = mean_squares;
    if (mean_squares != NULL)
        memcpy(s->mean_squares, mean_squares, m * sizeof(double));
    return s;
}

void solver_free(Solver *s)
{
    if (s == NULL)
        return;
    free(s->memory);
    free(s->indices);
    free(s);
}
