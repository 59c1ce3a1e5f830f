/* The step to the best point of a plane, by Newton's method in the lengths of its three directions. */

#include "walk.h"

#include <math.h>
#include <string.h>

#define ENOUGH 0.1 /* the search ends where a step would bring this share of what the first one did */
#define MOST_SEARCHES 6
#define MOST_CUTS 8
#define OVERSHOT 0.5 /* steps are shortened while the slope at their end is more than this share of that before */
#define RIDGE 1e-13 /* keeps directions that are nearly the same apart */

/* Gradient and curvature of the loss at m + sum_j t_j z_j, over the rows in play. */
FOR_MANY_PROCESSORS
static void search_sums(const Walk *k, const double t[N_LINES], double gradient[N_LINES],
                        double curvature[N_LINES][N_LINES])
{
    const double *m = k->shortfall, *y = k->labels, *c = k->costs, *centre = k->centre;
    const double *along = k->along, *last = k->last_shortfall;
    const double width = k->width, top = k->task.top, scale = 1 / (k->task.stiffness + width);
    const double t_down = t[DOWNHILL], t_last = t[LAST], shift = t[INTERCEPT];
    double g_down = 0, g_last = 0, g_shift = 0;
    double dd = 0, dl = 0, ds = 0, ll = 0, ls = 0, ss = 0;
#pragma omp simd reduction(+ : g_down, g_last, g_shift, dd, dl, ds, ll, ls, ss)
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
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
    gradient[DOWNHILL] = g_down;
    gradient[LAST] = g_last;
    gradient[INTERCEPT] = g_shift;
    curvature[DOWNHILL][DOWNHILL] = dd * scale;
    curvature[DOWNHILL][LAST] = curvature[LAST][DOWNHILL] = dl * scale;
    curvature[DOWNHILL][INTERCEPT] = curvature[INTERCEPT][DOWNHILL] = ds * scale;
    curvature[LAST][LAST] = ll * scale;
    curvature[LAST][INTERCEPT] = curvature[INTERCEPT][LAST] = ls * scale;
    curvature[INTERCEPT][INTERCEPT] = ss * scale;
}

/* The solution of a tiny positive semi-definite system in the first n unknowns, by Cholesky's method; 0 if none. */
static int solve(int n, double matrix[N_LINES][N_LINES], const double *right, double *solution)
{
    double scale[N_LINES], factor[N_LINES][N_LINES];
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

/* A Newton step in the lengths of the lines that there are; what it gains by the model, 0 where there is none. */
static double newton_step(const Walk *k, double curvature[N_LINES][N_LINES], const double gradient[N_LINES],
                          double step[N_LINES])
{
    int lines[N_LINES], n = 0;
    lines[n++] = DOWNHILL;
    if (k->has_last)
        lines[n++] = LAST;
    if (k->task.has_intercept)
        lines[n++] = INTERCEPT;
    double matrix[N_LINES][N_LINES], right[N_LINES], solution[N_LINES], gain = 0;
    for (int i = 0; i < n; i++) {
        right[i] = -gradient[lines[i]];
        for (int j = 0; j < n; j++)
            matrix[i][j] = k->gram[lines[i]][lines[j]] + curvature[lines[i]][lines[j]];
    }
    memset(step, 0, N_LINES * sizeof(double));
    if (!solve(n, matrix, right, solution))
        return 0;
    for (int i = 0; i < n; i++) {
        step[lines[i]] = solution[i];
        gain += right[i] * solution[i];
    }
    return gain > 0 && gain < INFINITY ? gain : 0;
}

/* The lengths t of the best point of the plane, nearly; all zero where nothing is to be gained. */
static void search_plane(const Walk *k, double t[N_LINES])
{
    double constant[N_LINES] = {k->along_weights[DOWNHILL], k->along_weights[LAST], -k->fixed_imbalance};
    double gradient[N_LINES], curvature[N_LINES][N_LINES], step[N_LINES], moved[N_LINES], first = 0;
    memset(t, 0, N_LINES * sizeof(double));
    search_sums(k, t, gradient, curvature);
    for (int i = 0; i < N_LINES; i++)
        gradient[i] += constant[i];
    for (int count = 0; count < MOST_SEARCHES; count++) {
        double length = 1, gain = newton_step(k, curvature, gradient, step);
        if (gain <= ENOUGH * first)
            return;
        first = gain > first ? gain : first;
        for (int cut = 0; cut < MOST_CUTS; cut++) {
            double at_end = 0;
            for (int i = 0; i < N_LINES; i++)
                moved[i] = t[i] + length * step[i];
            search_sums(k, moved, gradient, curvature);
            for (int i = 0; i < N_LINES; i++) {
                gradient[i] += constant[i];
                for (int j = 0; j < N_LINES; j++)
                    gradient[i] += k->gram[i][j] * moved[j];
                at_end += gradient[i] * step[i];
            }
            if (at_end <= OVERSHOT * gain)
                break;
            length *= gain / (gain + at_end);
        }
        memcpy(t, moved, sizeof moved);
    }
}

/* Shortfalls and intercept go there at once, the weights as soon as they are needed. */
FOR_MANY_PROCESSORS
static void go(Walk *k, const double t[N_LINES])
{
    const double t_down = t[DOWNHILL], t_last = t[LAST], shift = t[INTERCEPT];
    double *m = k->shortfall, *z = k->last_shortfall;
    const double *along = k->along, *y = k->labels;
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
        z[i] = t_down * along[i] + t_last * z[i];
        double change = z[i] - shift * y[i];
        m[i] += change;
        square += change * change;
    }
    k->due[DOWNHILL] = t_down;
    k->due[LAST] = t_last;
    k->is_due = 1;
    k->intercept += shift;
    k->has_last = 1;
    k->n_with_last = k->n_in_play;
    k->last_change = sqrt(square / (double)k->n_in_play);
    k->change = k->last_change > k->change / 2 || isinf(k->change) ? k->last_change : k->change / 2;
}

void begin_step(Walk *k)
{
    want(k, (Product){0, k->n_in_play, k->view->downhill, k->along});
    if (k->has_last && k->n_with_last < k->n_in_play) /* of rows that were left out */
        want(k, (Product){k->n_with_last, k->n_in_play, k->view->last, k->last_shortfall});
}

int end_step(Walk *k)
{
    double t[N_LINES];
    search_plane(k, t);
    if (t[DOWNHILL] == 0 && t[LAST] == 0 && t[INTERCEPT] == 0)
        return 0;
    go(k, t);
    evaluate(k);
    return 1;
}
