/* Where a walk is: intercept, slopes, gradient, objective, and the best bound so far. */

#include "walk.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MOST_SHIFTS 100
#define IMBALANCE 1e-3 /* of the classes, as a share of the gap */
#define SHRINK 0.5 /* the width, where the loss is sharpened */
#define LEAST_WIDTH 1e-12

double gap(const Walk *k)
{
    double bound = k->bound > k->blended_bound ? k->bound : k->blended_bound;
    return k->objective > 0 ? (k->objective - bound) / k->objective : k->objective - bound;
}

typedef struct {
    double imbalance, sum, curvature; /* sums of y c a, c a, c a'(s) */
} Balance;

/* With all shortfalls lowered by y times the shift; rows in play only. */
FOR_MANY_PROCESSORS
static Balance balance_at(const Walk *k, double shift)
{
    const double *s = k->shortfall, *y = k->labels, *c = k->costs, *centre = k->centre;
    const double width = k->width, top = k->task.top, scale = 1 / (k->task.stiffness + width);
    double imbalance = 0, sum = 0, curvature = 0;
#pragma omp simd reduction(+ : imbalance, sum, curvature)
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
        double a = (s[i] - shift * y[i] + width * centre[i]) * scale;
        curvature += (a > 0) & (a < top) ? c[i] : 0;
        a = c[i] * clipped(a, top);
        imbalance += y[i] * a;
        sum += a;
    }
    return (Balance){imbalance + k->fixed_imbalance, sum + k->fixed_sum, curvature * scale};
}

/* The change of the intercept that balances the classes, by safeguarded Newton steps (Python: ``balanced``). */
static double best_shift(const Walk *k)
{
    /* Below that, a sum of so many numbers says nothing. */
    double rest = 4 * DBL_EPSILON * sqrt((double)k->n_rows);
    rest = fmax(rest, IMBALANCE * (k->has_blend ? fmax(gap(k), k->goal) : 1));
    double low = -INFINITY, high = INFINITY, shift = 0, reach = 1, best = 0, least = INFINITY;
    for (int count = 0; count < MOST_SHIFTS; count++) {
        Balance here = balance_at(k, shift);
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
static void take_slopes(Walk *k, double shift)
{
    double *s = k->shortfall, *slopes = k->slopes;
    const double *y = k->labels, *c = k->costs, *centre = k->centre;
    const double width = k->width, top = k->task.top, scale = 1 / (k->task.stiffness + width);
    double sum = 0, curvature = 0;
#pragma omp simd reduction(+ : sum, curvature)
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
        s[i] -= shift * y[i];
        double a = (s[i] + width * centre[i]) * scale;
        curvature += (a > 0) & (a < top) ? c[i] : 0;
        slopes[i] = clipped(a, top);
        sum += c[i] * slopes[i];
    }
    k->intercept += shift;
    k->curvature = curvature * scale;
    k->slope_sum = sum + k->fixed_sum;
}

typedef struct {
    double loss, conjugate; /* sums of c phi(s) and c a^2 */
    double step, along, square; /* from the blend to the slopes: sums of c da, c da a, c da^2 */
} RowSums;

FOR_MANY_PROCESSORS
static RowSums sums_over_rows(const Walk *k)
{
    const double *s = k->shortfall, *slopes = k->slopes, *c = k->costs, *blended = k->blended;
    const double stiffness = k->task.stiffness, top = k->task.top;
    const double corner = isinf(top) ? INFINITY : stiffness * top, half = stiffness > 0 ? 0.5 / stiffness : 0;
    const double steepest = isinf(top) ? 0 : top; /* nothing is beyond an infinite corner */
    double loss = 0, conjugate = 0, step = 0, along = 0, square = 0;
#pragma omp simd reduction(+ : loss, conjugate, step, along, square)
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
        double m = s[i] > 0 ? s[i] : 0, inside = m < corner ? m : corner, da = slopes[i] - blended[i];
        loss += c[i] * (half * inside * inside + steepest * (m - inside));
        conjugate += c[i] * slopes[i] * slopes[i];
        step += c[i] * da;
        along += c[i] * da * blended[i];
        square += c[i] * da * da;
    }
    return (RowSums){loss, conjugate, step, along, square};
}

typedef struct {
    double weights, pull, gradient; /* |w|^2, |u|^2, |w - u|^2 */
    double along, square; /* from the blend: v . (u - v), |u - v|^2 */
    double fixed; /* w . sum of y c a x over the rows left out at the top */
} FeatureSums;

/* The step that is due is taken, so many times downhill and so many times the last one; then downhill is made anew:
   minus the gradient, each feature over 1 + its curvature where there is a preconditioner. All sums are taken in the same
   loop: vectors of a million features take longer to read than to add up. */
#define LOOP_OVER_FEATURES(DOWN)                                                      \
    _Pragma("omp simd reduction(+ : ww, uu, gg, along, square, dd, dl, ll, wd, wl, fw, fd, fl)") \
    for (ptrdiff_t j = 0; j < n; j++) {                                               \
        double step = is_due ? t_down * downhill[j] + t_last * last[j] : last[j];     \
        double weight = is_due ? w[j] + step : w[j], down = u[j] - weight, away = u[j] - blended[j]; \
        ww += weight * weight;                                                        \
        uu += u[j] * u[j];                                                            \
        gg += down * down;                                                            \
        along += blended[j] * away;                                                   \
        square += away * away;                                                        \
        down = DOWN;                                                                  \
        dd += down * down;                                                            \
        dl += down * step;                                                            \
        ll += step * step;                                                            \
        wd += weight * down;                                                          \
        wl += weight * step;                                                          \
        fw += fixed[j] * weight;                                                      \
        fd += fixed[j] * down;                                                        \
        fl += fixed[j] * step;                                                        \
        w[j] = weight;                                                                \
        last[j] = step;                                                               \
        downhill[j] = down;                                                           \
    }

FOR_MANY_PROCESSORS
static FeatureSums go_over_features(Walk *k)
{
    const double *u = k->view->dual_weights, *blended = k->view->blended_weights, *fixed = k->view->fixed_weights;
    const double *squares = k->view->mean_squares, curvature = k->curvature;
    const double t_down = k->due[DOWNHILL], t_last = k->due[LAST];
    const int is_due = k->is_due; /* a step of zero would not do where directions are infinite */
    const ptrdiff_t n = k->view->rows.n_features;
    double *w = k->view->weights, *last = k->view->last, *downhill = k->view->downhill;
    double ww = 0, uu = 0, gg = 0, along = 0, square = 0, dd = 0, dl = 0, ll = 0, wd = 0, wl = 0;
    double fw = 0, fd = 0, fl = 0;
    if (squares == NULL) {
        LOOP_OVER_FEATURES(down)
    } else {
        LOOP_OVER_FEATURES(down / (1 + curvature * squares[j]))
    }
    if (is_due)
        absent_step(k->view, t_down, t_last);
    k->is_due = 0;
    hear(k, (double)n);
    Absent absent = absent_now(k->view);
    k->gram[DOWNHILL][DOWNHILL] = dd + absent.gg;
    k->gram[DOWNHILL][LAST] = k->gram[LAST][DOWNHILL] = dl - absent.gl;
    k->gram[LAST][LAST] = ll + absent.ll;
    k->along_weights[DOWNHILL] = wd - absent.ug - absent.gg - (fd - absent.ug);
    k->along_weights[LAST] = wl + absent.ul + absent.gl - (fl + absent.ul);
    return (FeatureSums){
        .weights = ww + absent.uu + 2 * absent.ug + absent.gg,
        .pull = uu + absent.uu,
        .gradient = gg + absent.gg,
        .along = along,
        .square = square,
        .fixed = fw + absent.uu + absent.ug,
    };
}

/* start + share (end - start), in place. */
FOR_MANY_PROCESSORS
static void blend(double *start, const double *end, double share, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++)
        start[j] += share * (end[j] - start[j]);
}

void forget_blend(Walk *k)
{
    memcpy(k->blended, k->slopes, (size_t)k->n_rows * sizeof(double));
    memcpy(k->view->blended_weights, k->view->dual_weights, (size_t)k->view->rows.n_features * sizeof(double));
    k->blended_bound = k->bound;
    k->has_blend = 1;
}

/* D is a parabola on the way from the blend to the slopes. */
static void take_blend(Walk *k, RowSums rows, FeatureSums features)
{
    double slope = rows.step - k->task.stiffness * rows.along - features.along;
    double curvature = k->task.stiffness * rows.square + features.square;
    if (k->has_blend && slope > 0 && slope < curvature) {
        double share = slope / curvature;
        blend(k->blended, k->slopes, share, k->n_in_play);
        blend(k->view->blended_weights, k->view->dual_weights, share, k->view->rows.n_features);
        k->blended_bound += share * slope / 2;
    } else if (!k->has_blend || slope > 0 || k->bound > k->blended_bound) {
        forget_blend(k);
    }
}

void take_directions(Walk *k)
{
    go_over_features(k);
}

void begin_evaluation(Walk *k)
{
    View *view = k->view;
    take_slopes(k, k->task.has_intercept ? best_shift(k) : 0.0);
    memcpy(view->dual_weights, view->fixed_weights, (size_t)view->rows.n_features * sizeof(double));
}

void end_evaluation(Walk *k)
{
    RowSums rows = sums_over_rows(k);
    FeatureSums features = go_over_features(k);
    double of_fixed = k->fixed_sum - k->intercept * k->fixed_imbalance - k->fixed_conjugate - features.fixed;
    k->excess = features.gradient / 2;
    k->objective = features.weights / 2 + rows.loss + (k->fixed_sum > 0 ? of_fixed : 0); /* not 0 times infinity */
    k->bound = k->slope_sum - features.pull / 2 - k->task.stiffness * rows.conjugate / 2 - k->fixed_conjugate;
    take_blend(k, rows, features);
}

void evaluate(Walk *k)
{
    begin_evaluation(k);
    add_pulls(k, 0, k->n_in_play, 1.0, k->view->dual_weights);
    end_evaluation(k);
}

/* Rows left out stay where they are. */
void sharpen(Walk *k)
{
    memcpy(k->centre, k->slopes, (size_t)k->n_rows * sizeof(double));
    k->width = SHRINK * k->width > LEAST_WIDTH ? SHRINK * k->width : LEAST_WIDTH;
    evaluate(k);
}
