/* The current iterate: intercept, slopes, gradient, objective, and the best bound so far. */

#include "subspace.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MOST_SHIFTS 100
#define IMBALANCE 1e-3 /* of the classes, as a share of the gap */
#define SHRINK 0.5 /* the width, where the loss is sharpened */
#define LEAST_WIDTH 1e-12

double relative_gap(const Solver *s)
{
    double bound = s->bound > s->combined_bound ? s->bound : s->combined_bound;
    return s->objective > 0 ? (s->objective - bound) / s->objective : s->objective - bound;
}

typedef struct {
    double imbalance, sum, curvature; /* sums of y c a, c a, c a'(s) */
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
    double rest = 4 * DBL_EPSILON * sqrt((double)s->n_rows);
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

FOR_MANY_PROCESSORS
static void take_slopes(Solver *s, double shift)
{
    double *m = s->violation, *slopes = s->slopes;
    const double *y = s->labels, *c = s->costs, *centre = s->centre;
    const double width = s->width, top = s->task.top, scale = 1 / (s->task.stiffness + width);
    double sum = 0, curvature = 0;
#pragma omp simd reduction(+ : sum, curvature)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        m[i] -= shift * y[i];
        double a = (m[i] + width * centre[i]) * scale;
        curvature += (a > 0) & (a < top) ? c[i] : 0;
        slopes[i] = clipped(a, top);
        sum += c[i] * slopes[i];
    }
    s->intercept += shift;
    s->curvature = curvature * scale;
    s->slope_sum = sum + s->fixed_sum;
}

typedef struct {
    double loss, conjugate; /* sums of c phi(m) and c a^2 */
    double step, along, square; /* from the combination to the slopes: sums of c da, c da a, c da^2 */
} RowSums;

FOR_MANY_PROCESSORS
static RowSums sums_over_rows(const Solver *s)
{
    const double *m = s->violation, *slopes = s->slopes, *c = s->costs, *combined = s->combined;
    const double stiffness = s->task.stiffness, top = s->task.top;
    const double corner = isinf(top) ? INFINITY : stiffness * top, half = stiffness > 0 ? 0.5 / stiffness : 0;
    const double steepest = isinf(top) ? 0 : top; /* nothing is beyond an infinite corner */
    double loss = 0, conjugate = 0, step = 0, along = 0, square = 0;
#pragma omp simd reduction(+ : loss, conjugate, step, along, square)
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        double lost = m[i] > 0 ? m[i] : 0, inside = lost < corner ? lost : corner, da = slopes[i] - combined[i];
        loss += c[i] * (half * inside * inside + steepest * (lost - inside));
        conjugate += c[i] * slopes[i] * slopes[i];
        step += c[i] * da;
        along += c[i] * da * combined[i];
        square += c[i] * da * da;
    }
    return (RowSums){loss, conjugate, step, along, square};
}

typedef struct {
    double weights, dual_weights, gradient; /* |w|^2, |u|^2, |w - u|^2 */
    double along, square; /* from the combination: v . (u - v), |u - v|^2 */
    double fixed; /* w . sum of y c a x over the rows held out at the top */
} FeatureSums;

/* The pending step is taken, so many times down the gradient and so many times the last one; then the direction of descent is
   computed anew: minus the gradient, each feature over 1 + its curvature where there is a preconditioner. All sums are taken in the same
   loop: vectors of a million features take longer to read than to add up. */
#define LOOP_OVER_FEATURES(DOWN)                                                                          \
    _Pragma("omp simd reduction(+ : ww, uu, gg, along, square, dd, dl, ll, wd, wl, fw, fd, fl)")          \
    for (ptrdiff_t j = 0; j < n; j++) {                                                                   \
        double step = is_pending ? t_down * descent[j] + t_last * last[j] : last[j];                      \
        double weight = is_pending ? w[j] + step : w[j], down = u[j] - weight, away = u[j] - combined[j]; \
        ww += weight * weight;                                                                            \
        uu += u[j] * u[j];                                                                                \
        gg += down * down;                                                                                \
        along += combined[j] * away;                                                                      \
        square += away * away;                                                                            \
        down = DOWN;                                                                                      \
        dd += down * down;                                                                                \
        dl += down * step;                                                                                \
        ll += step * step;                                                                                \
        wd += weight * down;                                                                              \
        wl += weight * step;                                                                              \
        fw += fixed[j] * weight;                                                                          \
        fd += fixed[j] * down;                                                                            \
        fl += fixed[j] * step;                                                                            \
        w[j] = weight;                                                                                    \
        last[j] = step;                                                                                   \
        descent[j] = down;                                                                                \
    }

FOR_MANY_PROCESSORS
static FeatureSums pass_over_features(Solver *s)
{
    const double *u = s->copy->dual_weights, *combined = s->copy->combined_weights, *fixed = s->copy->fixed_weights;
    const double *squares = s->copy->mean_squares, curvature = s->curvature;
    const double t_down = s->pending[DESCENT], t_last = s->pending[LAST];
    const int is_pending = s->is_pending; /* a step of zero would not do where directions are infinite */
    const ptrdiff_t n = s->copy->rows.n_features;
    double *w = s->copy->weights, *last = s->copy->last, *descent = s->copy->descent;
    double ww = 0, uu = 0, gg = 0, along = 0, square = 0, dd = 0, dl = 0, ll = 0, wd = 0, wl = 0;
    double fw = 0, fd = 0, fl = 0;
    if (squares == NULL) {
        LOOP_OVER_FEATURES(down)
    } else {
        LOOP_OVER_FEATURES(down / (1 + curvature * squares[j]))
    }
    if (is_pending)
        absent_step(s->copy, t_down, t_last);
    s->is_pending = 0;
    poll_interrupt(s, (double)n);
    Absent absent = absent_now(s->copy);
    s->gram[DESCENT][DESCENT] = dd + absent.gg;
    s->gram[DESCENT][LAST] = s->gram[LAST][DESCENT] = dl - absent.gl;
    s->gram[LAST][LAST] = ll + absent.ll;
    s->along_weights[DESCENT] = wd - absent.ug - absent.gg - (fd - absent.ug);
    s->along_weights[LAST] = wl + absent.ul + absent.gl - (fl + absent.ul);
    return (FeatureSums){
        .weights = ww + absent.uu + 2 * absent.ug + absent.gg,
        .dual_weights = uu + absent.uu,
        .gradient = gg + absent.gg,
        .along = along,
        .square = square,
        .fixed = fw + absent.uu + absent.ug,
    };
}

/* start + share (end - start), in place. */
FOR_MANY_PROCESSORS
static void combine(double *start, const double *end, double share, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        start[j] += share * (end[j] - start[j]);
}

void restart_combination(Solver *s)
{
    memcpy(s->combined, s->slopes, (size_t)s->n_rows * sizeof(double));
    memcpy(s->copy->combined_weights, s->copy->dual_weights, (size_t)s->copy->rows.n_features * sizeof(double));
    s->combined_bound = s->bound;
    s->has_combined = 1;
}

/* D is a parabola along the segment from the combination to the slopes. */
static void update_combination(Solver *s, RowSums rows, FeatureSums features)
{
    double slope = rows.step - s->task.stiffness * rows.along - features.along;
    double curvature = s->task.stiffness * rows.square + features.square;
    if (s->has_combined && slope > 0 && slope < curvature) {
        double share = slope / curvature;
        combine(s->combined, s->slopes, share, s->n_active);
        combine(s->copy->combined_weights, s->copy->dual_weights, share, s->copy->rows.n_features);
        s->combined_bound += share * slope / 2;
    } else if (!s->has_combined || slope > 0 || s->bound > s->combined_bound) {
        restart_combination(s);
    }
}

void renew_directions(Solver *s)
{
    pass_over_features(s);
}

void evaluate(Solver *s)
{
    ActiveCopy *copy = s->copy;
    take_slopes(s, s->task.has_intercept ? best_shift(s) : 0.0);
    memcpy(copy->dual_weights, copy->fixed_weights, (size_t)copy->rows.n_features * sizeof(double));
    add_dual_weights(s, 0, s->n_active, 1.0, copy->dual_weights);
    RowSums rows = sums_over_rows(s);
    FeatureSums features = pass_over_features(s);
    double of_fixed = s->fixed_sum - s->intercept * s->fixed_imbalance - s->fixed_conjugate - features.fixed;
    s->excess = features.gradient / 2;
    s->objective = features.weights / 2 + rows.loss + (s->fixed_sum > 0 ? of_fixed : 0); /* not 0 times infinity */
    s->bound = s->slope_sum - features.dual_weights / 2 - s->task.stiffness * rows.conjugate / 2 - s->fixed_conjugate;
    update_combination(s, rows, features);
}

/* Held-out rows stay where they are. */
void sharpen(Solver *s)
{
    memcpy(s->centre, s->slopes, (size_t)s->n_rows * sizeof(double));
    s->width = SHRINK * s->width > LEAST_WIDTH ? SHRINK * s->width : LEAST_WIDTH;
    evaluate(s);
}
