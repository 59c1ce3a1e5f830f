/* Shrinking: rows whose slope does not change are held out, in nested active sets.

   The margins of the active rows are watched: by how much they have moved since a set was made (its drift) bounds about how far
   those held out have. Beyond a trust radius, or where the gap has come down, these are checked. */

#include "subspace.h"

#include <math.h>
#include <string.h>

#define FEWEST_ROWS 500 /* below so many nothing is held out */
#define MOST_ACTIVE 0.7 /* rows are held out where at most this share stays */
#define RECHECK 0.01 /* rows held out are checked where the gap has come down to this share */
#define NEAR 3.0 /* a gap above which rows come and go as they like */
#define MOST_REACH 32.0
/* Where one or two words nearly separate a small class, rows held out move many times as far as active ones: hundreds of
   them turn up on the wrong side, and the loss is too sharp for what is a new problem. From this share of the active rows on
   its width is multiplied by WIDEN, and rows held out are checked that much sooner: on the sampled classes of word pairs at
   C = 10 that takes about a third of the passes or less. */
#define SURPRISE 0.005
#define WIDEN 4.0
#define MOST_MOBILITY 16.0

_Static_assert(sizeof(ptrdiff_t) == sizeof(double), "indices are moved as numbers are");

/* The sums of rows held out at the top, from first to last; they come (1) or go (-1). */
static void note_fixed(Solver *s, ptrdiff_t first, ptrdiff_t last, double sign)
{
    for (ptrdiff_t i = first; i < last; i++) {
        double a = sign * s->costs[i] * s->slopes[i];
        s->fixed_sum += a;
        s->fixed_imbalance += s->labels[i] * a;
        s->fixed_conjugate += s->task.stiffness * a * s->slopes[i] / 2;
    }
    add_dual_weights(s, first, last, sign, s->copy->fixed_weights);
}

/* The numbers in this order. */
static void arrange(void *numbers, const ptrdiff_t *order, ptrdiff_t n, double *spare)
{
    double *values = numbers; /* or indices, which have as many bytes and are only moved */
    for (ptrdiff_t i = 0; i < n; i++)
        memcpy(spare + i, values + order[i], sizeof(double));
    memcpy(values, spare, (size_t)n * sizeof(double));
}

/* Active rows whose slope may change, and then the others, each kind in its order; how many of the first there are.
   Every row is written to both places, and the next one over it in the wrong one: a processor cannot guess which it is. */
FOR_MANY_PROCESSORS
static ptrdiff_t order_rows(const Solver *s, double far, ptrdiff_t *order, ptrdiff_t *left)
{
    const double *violation = s->violation, *centre = s->centre, width = s->width;
    const double end = s->task.top * (s->task.stiffness + width); /* of the ramp */
    ptrdiff_t n_kept = 0;
    for (ptrdiff_t i = 0; i < s->n_active; i++) {
        double m = violation[i] + width * centre[i];
        order[n_kept] = left[i - n_kept] = i;
        n_kept += (m + far > 0) & (m - far < end);
    }
    memcpy(order + n_kept, left, (size_t)(s->n_active - n_kept) * sizeof *order);
    return n_kept;
}

void shrink(Solver *s)
{
    ptrdiff_t *order = (ptrdiff_t *)s->along; /* which the next step writes anew */
    ptrdiff_t n = s->n_active, n_kept, n_with_last = 0;
    double far = s->reach * s->typical_change;
    int differs = 0;
    if (n < FEWEST_ROWS || s->n_active_sets == MOST_ACTIVE_SETS || !isfinite(far) || relative_gap(s) > NEAR)
        return;
    n_kept = order_rows(s, far, order, (ptrdiff_t *)s->spare);
    if (n_kept == 0 || (double)n_kept > MOST_ACTIVE * (double)n)
        return;
    while (n_with_last < n_kept && order[n_with_last] < s->n_with_last)
        n_with_last++;
    for (ptrdiff_t i = n_kept; i < n; i++)
        differs |= s->combined[order[i]] != s->slopes[order[i]];
    void *vectors[] = {s->labels, s->costs,   s->violation,      s->slopes,
                       s->centre, s->combined, s->last_change, s->copy->which};
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
        arrange(vectors[v], order, n, s->spare);
    ActiveSet *set = &s->active_sets[s->n_active_sets++];
    *set = (ActiveSet){.n_rows = n, .trust_radius = far / s->mobility, .gap = relative_gap(s)};
    s->n_active = n_kept;
    s->n_with_last = n_with_last;
    note_fixed(s, n_kept, n, 1.0);
    if (differs) /* convex combinations would move rows that are held out */
        restart_combination(s);
    set->has_copy = copy_active_rows(s);
    if (!set->has_copy)
        renew_directions(s); /* their products with what is fixed now */
}

/* The rows that were held out last are active again, wherever they may be now. */
static void restore_last(Solver *s)
{
    ActiveSet set = s->active_sets[--s->n_active_sets];
    if (set.has_copy)
        pop_copy(s);
    note_fixed(s, s->n_active, set.n_rows, -1.0);
    if (s->n_active_sets == 0) { /* exactly, whatever was rounded */
        memset(s->copy->fixed_weights, 0, (size_t)s->copy->rows.n_features * sizeof(double));
        s->fixed_sum = s->fixed_imbalance = s->fixed_conjugate = 0;
    }
    s->n_active = set.n_rows;
}

/* Whether rows held out then have to be checked. */
static int is_stale(const Solver *s, const ActiveSet *set)
{
    return set->drift > set->trust_radius || relative_gap(s) <= RECHECK * set->gap;
}

int recheck(Solver *s, int all)
{
    double scale = 1 / (s->task.stiffness + s->width);
    double farthest = 0; /* of rows whose slope has changed unseen */
    ptrdiff_t first = s->n_active, n_moved = 0;
    int n_good = 0;
    while (!all && n_good < s->n_active_sets && !is_stale(s, &s->active_sets[n_good]))
        n_good++;
    double drift = n_good < s->n_active_sets ? s->active_sets[n_good].drift : 0;
    while (s->n_active_sets > n_good && !s->is_interrupted)
        restore_last(s);
    if (first == s->n_active)
        return 0;
    memcpy(s->along + first, s->violation + first, (size_t)(s->n_active - first) * sizeof(double));
    times_rows(s, first, s->n_active, s->copy->weights, s->violation);
    for (ptrdiff_t i = first; i < s->n_active; i++) {
        s->violation[i] += 1 - s->labels[i] * s->intercept;
        if (clipped((s->violation[i] + s->width * s->centre[i]) * scale, s->task.top) != s->slopes[i]) {
            farthest = fmax(farthest, fabs(s->violation[i] - s->along[i]));
            n_moved++;
        }
    }
    if (n_moved == 0) {
        renew_directions(s);
        return 0;
    }
    s->reach = fmin(2 * s->reach, MOST_REACH);
    if (drift > 0)
        s->mobility = fmin(fmax(s->mobility, farthest / drift), MOST_MOBILITY);
    if ((double)n_moved > SURPRISE * (double)first && s->width > 0)
        s->width = fmin(WIDEN * s->width, s->first_width);
    evaluate(s);
    return 1;
}
