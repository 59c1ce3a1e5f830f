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
} FeatureSums;

/* Downhill is minus the gradient, each feature over 1 + its curvature where there is a preconditioner. */
FOR_MANY_PROCESSORS
static void take_downhill(Walk *k)
{
    const double *w = k->view->weights, *u = k->view->dual_weights, *mean_squares = k->view->mean_squares, curvature = k->curvature;
    double *downhill = k->view->downhill;
    if (mean_squares == NULL)
        for (ptrdiff_t j = 0; j < k->view->rows.n_features; j++)
            downhill[j] = u[j] - w[j];
    else
        for (ptrdiff_t j = 0; j < k->view->rows.n_features; j++)
            downhill[j] = (u[j] - w[j]) / (1 + curvature * mean_squares[j]);
}

/* The products that a plane needs too: one loop over all vectors. */
FOR_MANY_PROCESSORS
static FeatureSums sums_over_features(Walk *k)
{
    const double *w = k->view->weights, *u = k->view->dual_weights, *blended = k->view->blended_weights;
    const double *downhill = k->view->downhill, *last = k->view->last;
    double ww = 0, uu = 0, gg = 0, along = 0, square = 0, dd = 0, dl = 0, ll = 0, wd = 0, wl = 0;
#pragma omp simd reduction(+ : ww, uu, gg, along, square, dd, dl, ll, wd, wl)
    for (ptrdiff_t j = 0; j < k->view->rows.n_features; j++) {
        double away = u[j] - blended[j];
        ww += w[j] * w[j];
        uu += u[j] * u[j];
        gg += (u[j] - w[j]) * (u[j] - w[j]);
        along += blended[j] * away;
        square += away * away;
        dd += downhill[j] * downhill[j];
        dl += downhill[j] * last[j];
        ll += last[j] * last[j];
        wd += w[j] * downhill[j];
        wl += w[j] * last[j];
    }
    Absent absent = absent_now(k->view);
    k->gram[DOWNHILL][DOWNHILL] = dd + absent.gg;
    k->gram[DOWNHILL][LAST] = k->gram[LAST][DOWNHILL] = dl - absent.gl;
    k->gram[LAST][LAST] = ll + absent.ll;
    k->along_weights[DOWNHILL] = wd - absent.ug - absent.gg;
    k->along_weights[LAST] = wl + absent.ul + absent.gl;
    return (FeatureSums){ww + absent.uu + 2 * absent.ug + absent.gg, uu + absent.uu, gg + absent.gg, along, square};
}

FOR_MANY_PROCESSORS
double dot(const double *a, const double *b, ptrdiff_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
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
    take_downhill(k);
    sums_over_features(k);
}

void evaluate(Walk *k)
{
    View *view = k->view;
    take_slopes(k, k->task.has_intercept ? best_shift(k) : 0.0);
    memcpy(view->dual_weights, view->fixed_weights, (size_t)view->rows.n_features * sizeof(double));
    add_pulls(k, 0, k->n_in_play, 1.0, view->dual_weights);
    take_downhill(k);
    RowSums rows = sums_over_rows(k);
    FeatureSums features = sums_over_features(k);
    double of_fixed = 0;
    if (k->fixed_sum > 0) {
        Absent absent = absent_now(view);
        of_fixed = k->fixed_sum - k->intercept * k->fixed_imbalance - k->fixed_conjugate - absent.uu - absent.ug -
                   dot(view->fixed_weights, view->weights, view->rows.n_features);
    }
    k->excess = features.gradient / 2;
    k->objective = features.weights / 2 + rows.loss + of_fixed;
    k->bound = k->slope_sum - features.pull / 2 - k->task.stiffness * rows.conjugate / 2 - k->fixed_conjugate;
    take_blend(k, rows, features);
}

/* Rows left out stay where they are. */
void sharpen(Walk *k)
{
    memcpy(k->centre, k->slopes, (size_t)k->n_rows * sizeof(double));
    k->width = SHRINK * k->width > LEAST_WIDTH ? SHRINK * k->width : LEAST_WIDTH;
    evaluate(k);
}
