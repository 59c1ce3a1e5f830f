/* Rows in play, and rows left out, level by level. */

#include "walk.h"

#include <math.h>
#include <string.h>

#define FEWEST_ROWS 500 /* below so many nothing is left out */
#define MOST_IN_PLAY 0.7 /* rows are left out where at most this share stays */
#define LOOK 0.01 /* rows left out are looked at where the gap has come down to this share */
#define NEAR 3.0 /* a gap above which rows come and go as they like */
#define MOST_REACH 32.0
/* Where one or two words nearly separate a small class, rows left out move many times as far as those in play: hundreds of
   them turn up on the wrong side, and the loss is too sharp for what is a new problem. From this share of the rows in play
   on it is made so many times as wide again, and rows left out are looked at that much sooner: on the sampled classes of word
   pairs at C = 10 that takes about a third of the passes or less. */
#define SURPRISE 0.005
#define WIDEN 4.0
#define MOST_MOBILITY 16.0

_Static_assert(sizeof(ptrdiff_t) == sizeof(double), "indices are moved as numbers are");

/* The sums of rows left out at the top, from first to last; they come (1) or go (-1). */
static void note_fixed(Walk *k, ptrdiff_t first, ptrdiff_t last, double sign)
{
    for (ptrdiff_t i = first; i < last; i++) {
        double a = sign * k->costs[i] * k->slopes[i];
        k->fixed_sum += a;
        k->fixed_imbalance += k->labels[i] * a;
        k->fixed_conjugate += k->task.stiffness * a * k->slopes[i] / 2;
    }
    add_pulls(k, first, last, sign, k->view->fixed_weights);
}

/* The numbers in this order. */
static void arrange(void *numbers, const ptrdiff_t *order, ptrdiff_t n, double *spare)
{
    double *values = numbers; /* or indices, which have as many bytes and are only moved */
    for (ptrdiff_t i = 0; i < n; i++)
        memcpy(spare + i, values + order[i], sizeof(double));
    memcpy(values, spare, (size_t)n * sizeof(double));
}

/* Rows in play whose slope may change, and then the others, each kind in its order; how many of the first there are.
   Every row is written to both places, and the next one over it in the wrong one: a processor cannot guess which it is. */
FOR_MANY_PROCESSORS
static ptrdiff_t order_rows(const Walk *k, double far, ptrdiff_t *order, ptrdiff_t *left)
{
    const double *shortfall = k->shortfall, *centre = k->centre, width = k->width;
    const double end = k->task.top * (k->task.stiffness + width); /* of the ramp */
    ptrdiff_t n_kept = 0;
    for (ptrdiff_t i = 0; i < k->n_in_play; i++) {
        double m = shortfall[i] + width * centre[i];
        order[n_kept] = left[i - n_kept] = i;
        n_kept += (m + far > 0) & (m - far < end);
    }
    memcpy(order + n_kept, left, (size_t)(k->n_in_play - n_kept) * sizeof *order);
    return n_kept;
}

void leave_out(Walk *k)
{
    ptrdiff_t *order = (ptrdiff_t *)k->along; /* which the next step writes anew */
    ptrdiff_t n = k->n_in_play, n_kept, n_with_last = 0;
    double far = k->reach * k->change;
    int differs = 0;
    if (n < FEWEST_ROWS || k->n_levels == MOST_LEVELS || !isfinite(far) || gap(k) > NEAR)
        return;
    n_kept = order_rows(k, far, order, (ptrdiff_t *)k->spare);
    if (n_kept == 0 || (double)n_kept > MOST_IN_PLAY * (double)n)
        return;
    while (n_with_last < n_kept && order[n_with_last] < k->n_with_last)
        n_with_last++;
    for (ptrdiff_t i = n_kept; i < n; i++)
        differs |= k->blended[order[i]] != k->slopes[order[i]];
    void *vectors[] = {k->labels, k->costs,   k->shortfall,      k->slopes,
                       k->centre, k->blended, k->last_shortfall, k->view->which};
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
        arrange(vectors[v], order, n, k->spare);
    Level *level = &k->levels[k->n_levels++];
    *level = (Level){.n_rows = n, .leash = far / k->mobility, .gap = gap(k)};
    k->n_in_play = n_kept;
    k->n_with_last = n_with_last;
    note_fixed(k, n_kept, n, 1.0);
    if (differs) /* blends would move rows that are left out */
        forget_blend(k);
    level->has_view = copy_view(k);
    if (!level->has_view)
        take_directions(k); /* their products with what is fixed now */
}

/* The rows that were left out last are in play again, wherever they may be now. */
static void take_back_last(Walk *k)
{
    Level level = k->levels[--k->n_levels];
    if (level.has_view)
        drop_view(k);
    note_fixed(k, k->n_in_play, level.n_rows, -1.0);
    if (k->n_levels == 0) { /* exactly, whatever was rounded */
        memset(k->view->fixed_weights, 0, (size_t)k->view->rows.n_features * sizeof(double));
        k->fixed_sum = k->fixed_imbalance = k->fixed_conjugate = 0;
    }
    k->n_in_play = level.n_rows;
}

/* Whether rows left out then have to be looked at again. */
static int is_stale(const Walk *k, const Level *level)
{
    return level->drift > level->leash || gap(k) <= LOOK * level->gap;
}

void begin_look(Walk *k, int all)
{
    int n_good = 0;
    k->looked_from = k->n_in_play;
    while (!all && n_good < k->n_levels && !is_stale(k, &k->levels[n_good]))
        n_good++;
    k->looked_drift = n_good < k->n_levels ? k->levels[n_good].drift : 0;
    while (k->n_levels > n_good && !k->is_interrupted)
        take_back_last(k);
    if (k->looked_from == k->n_in_play)
        return;
    memcpy(k->along + k->looked_from, k->shortfall + k->looked_from,
           (size_t)(k->n_in_play - k->looked_from) * sizeof(double));
    want(k, (Product){k->looked_from, k->n_in_play, k->view->weights, k->shortfall});
}

int end_look(Walk *k)
{
    double scale = 1 / (k->task.stiffness + k->width);
    double farthest = 0; /* of rows whose slope has changed unseen */
    ptrdiff_t n_moved = 0;
    if (k->looked_from == k->n_in_play)
        return 0;
    for (ptrdiff_t i = k->looked_from; i < k->n_in_play; i++) {
        k->shortfall[i] += 1 - k->labels[i] * k->intercept;
        if (clipped((k->shortfall[i] + k->width * k->centre[i]) * scale, k->task.top) != k->slopes[i]) {
            farthest = fmax(farthest, fabs(k->shortfall[i] - k->along[i]));
            n_moved++;
        }
    }
    if (n_moved > 0) {
        k->reach = fmin(2 * k->reach, MOST_REACH);
        if (k->looked_drift > 0)
            k->mobility = fmin(fmax(k->mobility, farthest / k->looked_drift), MOST_MOBILITY);
        if ((double)n_moved > SURPRISE * (double)k->looked_from && k->width > 0)
            k->width = fmin(WIDEN * k->width, k->first_width);
        evaluate(k);
    } else {
        take_directions(k);
    }
    return n_moved > 0;
}
