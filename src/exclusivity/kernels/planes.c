/* Steps in planes over the rows that matter.

       f(w, b) = 1/2 |w|^2 + sum_i c_i phi(s_i),   s_i = 1 - y_i (x_i . w + b),
       phi(s) = max { a s - k a^2 / 2 : 0 <= a <= top }

   is the hinge (k = 0, top = 1), the squared hinge (k = 1/2, top = infinity) or the smooth hinge (k = 1, top = 1).
   What is minimised is this loss around a dual vector a0 (the augmented Lagrangian; width 0 leaves it as it is),

       max { a s - k a^2 / 2 - width (a - a0)^2 / 2 : 0 <= a <= top },   slope  a = clip((s + width a0) / (k + width)),

   a ramp. Its slopes are feasible for the dual of the true loss once the intercept is at its best, sum y c a = 0, and
   u = sum_i y_i c_i a_i x_i gives the gradient w - u and the bound D(a) = sum c a - 1/2 |u|^2 - k/2 sum c a^2. As soon
   as the gradient is a small share of the gap, a0 follows the slopes and the width shrinks.

   A step leads to the best point of the plane through w that the gradient and the last step span, the intercept being
   a third direction, for one product with X and one with X^T (the Python class ``Plane`` has the argument). Bounds
   are taken at the best blend of all slopes met (``DualBlend``).

   Rows whose slope is 0 or ``top`` and stays there are left out, in levels, each of them rows of the one before: rows
   in play come first in all vectors. Those left out at the top pull with a constant force, whose sums are kept; their
   loss is linear, c top (s - k top / 2), and needs no products. Rows left out are looked at again when those in play
   have moved as far as they were away, or the gap has come down. */

#include "walk.h"

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

enum { N_ROW_VECTORS = 9 };

/* The loss comes closer to the true one where the gradient is to blame for little of the gap. */
static int is_settled(const Walk *k)
{
    double settled = k->width > SHARP && !k->is_wide ? SETTLED : SETTLED_WELL;
    return k->width > 0 && k->excess <= settled * fmax(k->objective - k->bound, 0);
}

/* One step more is counted; whether they still come to something. */
static int is_patient(Walk *k)
{
    k->n_steps_left--;
    k->n_steps = (k->n_steps + 1) % PATIENCE; /* however many there are in all */
    if (k->n_steps != 0)
        return 1;
    double before = k->gap_before;
    k->gap_before = gap(k);
    return k->gap_before <= before / 2;
}

static void arrive(Walk *k)
{
    int is_elsewhere = 0; /* than at zero */
    for (ptrdiff_t j = 0; j < k->view->rows.n_features; j++)
        is_elsewhere |= k->view->weights[j] != 0;
    if (is_elsewhere)
        want(k, (Product){0, k->n_rows, k->view->weights, k->shortfall});
    k->stage = BEGINS;
}

static void begin(Walk *k)
{
    for (ptrdiff_t i = 0; i < k->n_rows; i++)
        k->shortfall[i] += 1 - k->labels[i] * k->intercept;
    begin_evaluation(k);
    if (k->view->below == NULL)
        k->wants_pulls = 1;
    else
        add_pulls(k, 0, k->n_rows, 1.0, k->view->dual_weights);
    k->stage = HAS_PULLS;
}

/* Whether it is close, or seems to be; a look at all rows where that turned out wrong; otherwise a sharper loss, or a
   step. */
static Ending decide(Walk *k)
{
    if (gap(k) <= k->goal && k->n_levels == 0)
        return IS_CLOSE;
    if (gap(k) <= k->goal && !k->seems_close) {
        k->seems_close = 1;
        return SEEMS_CLOSE;
    }
    if (gap(k) <= k->goal) {
        begin_look(k, 1);
        k->stage = LOOKS_CLOSE;
    } else if (k->n_steps_left <= 0) {
        return IS_ON_ITS_WAY;
    } else if (!is_patient(k)) {
        return IS_SLOW;
    } else if (is_settled(k)) {
        sharpen(k);
    } else {
        begin_step(k);
        k->stage = STEPS;
    }
    return IS_WAITING;
}

static Ending take_step(Walk *k)
{
    if (end_step(k)) {
        for (int i = 0; i < k->n_levels; i++)
            k->levels[i].drift += k->last_change;
        begin_look(k, 0);
        k->stage = LOOKS;
    } else if (k->n_levels > 0) {
        begin_look(k, 1);
        k->stage = LOOKS_STUCK;
    } else if (k->width > 0) {
        sharpen(k);
        k->stage = DECIDES;
    } else {
        return IS_SLOW;
    }
    return IS_WAITING;
}

static void look(Walk *k)
{
    Stage stage = k->stage;
    int has_moved = end_look(k);
    k->seems_close = k->seems_close && stage != LOOKS_CLOSE;
    k->stage = DECIDES;
    if (stage == LOOKS && gap(k) > k->goal) {
        leave_out(k);
    } else if (stage == LOOKS_STUCK && !has_moved) {
        begin_step(k);
        k->stage = STEPS;
    }
}

Ending walk_on(Walk *k)
{
    Ending ending = IS_WAITING;
    while (ending == IS_WAITING && k->n_wanted == 0 && !k->wants_pulls && !k->is_interrupted) {
        switch (k->stage) {
        case ARRIVES:
            arrive(k);
            break;
        case BEGINS:
            begin(k);
            break;
        case HAS_PULLS:
            end_evaluation(k);
            k->stage = DECIDES;
            break;
        case DECIDES:
            ending = decide(k);
            break;
        case STEPS:
            ending = take_step(k);
            break;
        case LOOKS:
        case LOOKS_CLOSE:
        case LOOKS_STUCK:
            look(k);
            break;
        }
    }
    return k->is_interrupted ? IS_INTERRUPTED : ending;
}

int walk_is_interrupted(const Walk *k)
{
    return k->is_interrupted;
}

Place walk_place(const Walk *k)
{
    double passes = k->n_read / (2 * fmax(k->n_numbers, 1));
    double bound = k->bound > k->blended_bound ? k->bound : k->blended_bound;
    return (Place){k->intercept, k->width, k->objective, bound, sqrt(2 * k->excess), passes};
}

void walk_write(const Walk *k, double *weights, double *slopes, double *dual)
{
    const double *best = k->bound > k->blended_bound ? k->slopes : k->blended;
    write_weights(k, weights);
    for (ptrdiff_t i = 0; i < k->n_rows; i++) {
        ptrdiff_t row = original_row(k, i);
        slopes[row] = k->slopes[i];
        dual[row] = best[i];
    }
}

Walk *walk_new(const Rows *rows, Task task, const double *labels, const double *costs, const double *weights,
               const double *centre, const double *mean_squares, double intercept, double width, Poll poll,
               void *context)
{
    size_t n = (size_t)rows->n_rows;
    Walk *k = calloc(1, sizeof *k);
    double *memory = k == NULL ? NULL : calloc(N_ROW_VECTORS * n + 1, sizeof(double));
    View *view = memory == NULL ? NULL : view_new(rows, mean_squares);
    if (view == NULL) {
        free(memory);
        free(k);
        return NULL;
    }
    double **vectors[] = {&k->labels,  &k->costs,          &k->shortfall, &k->slopes, &k->centre,
                          &k->blended, &k->last_shortfall, &k->along,     &k->spare};
    for (size_t v = 0; v < N_ROW_VECTORS; v++)
        *vectors[v] = memory + v * n;
    k->n_rows = k->n_in_play = rows->n_rows;
    k->n_numbers = (double)rows_size(rows, view->which, rows->n_rows);
    k->task = task;
    k->poll = poll;
    k->context = context;
    k->view = view;
    k->memory = memory;
    k->intercept = intercept;
    k->width = width;
    k->goal = 1;
    k->is_wide = rows->n_features > WIDE * rows->n_rows;
    k->reach = FIRST_REACH;
    k->mobility = 1;
    k->first_width = width;
    k->change = k->gap_before = INFINITY;
    memcpy(k->labels, labels, n * sizeof(double));
    memcpy(k->costs, costs, n * sizeof(double));
    memcpy(k->centre, centre, n * sizeof(double));
    memcpy(view->weights, weights, (size_t)rows->n_features * sizeof(double));
    sort_view(k);
    return k;
}

void walk_free(Walk *walk)
{
    if (walk == NULL)
        return;
    view_free(walk->view);
    free(walk->memory);
    free(walk);
}
