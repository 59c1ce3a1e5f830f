/* Products with the rows, and copies of the active ones.

   Few active rows are worth a copy: their numbers fit into a cache, and so do vectors of the features that occur in them. The
   other features depend on the rows held out alone, whose dual weights u_j do not change. Minus their gradient, u_j - w_j, is
   their direction of descent (they have no curvature), so that steps leave gradient g and last step l among the sums of what
   these two were in the beginning: four numbers say where they all are. */

#include "subspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NUMBERS (1 << 23) /* some hundredths of a second */
#define MOST_COPIED 0.25 /* of the rows: a third of X in doubles at the most, with copies of copies */

/* Features are sorted where they are so many that vectors of them do not fit into a cache, the loss takes many passes and
   numbers are so many: 20,000 x 1,000,000 with 360 numbers per row take 34 instead of 72 ms per pass. */
#define MANY_FEATURES (1 << 18)
#define MANY_NUMBERS (1 << 20)
#define MOST_NUMBERS (1 << 24)

enum { N_VECTORS = 6 };

ActiveCopy *copy_new(const Csr *rows, const double *mean_squares)
{
    size_t n = (size_t)rows->n_rows, m = (size_t)rows->n_features;
    ActiveCopy *copy = calloc(1, sizeof *copy);
    double *memory = copy == NULL ? NULL : calloc(N_VECTORS * m + n + 1, sizeof(double));
    if (memory == NULL) {
        free(copy);
        return NULL;
    }
    double **vectors[] = {&copy->weights,         &copy->dual_weights,  &copy->last,
                          &copy->combined_weights, &copy->fixed_weights, &copy->descent};
    for (size_t v = 0; v < N_VECTORS; v++)
        *vectors[v] = memory + v * m;
    copy->which = (ptrdiff_t *)(memory + N_VECTORS * m);
    for (size_t i = 0; i < n; i++)
        copy->which[i] = (ptrdiff_t)i;
    copy->rows = *rows;
    copy->mean_squares = mean_squares;
    copy->absent.gradient[0] = copy->absent.last[1] = 1;
    copy->memory = memory;
    return copy;
}

void copy_free(ActiveCopy *copy)
{
    while (copy != NULL) {
        ActiveCopy *below = copy->below;
        if (below != NULL)
            free((void *)copy->mean_squares);
        csr_free(&copy->csr);
        free(copy->memory);
        free(copy);
        copy = below;
    }
}

/* ---- products ---- */

void poll_interrupt(Solver *s, double n_numbers)
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

/* So many rows are read between two polls. */
static ptrdiff_t rows_at_a_time(const Solver *s)
{
    return 1 + (ptrdiff_t)(POLL_NUMBERS / (1 + s->n_numbers / (double)s->n_rows));
}

void times_rows(Solver *s, ptrdiff_t first, ptrdiff_t last, const double *vector, double *products)
{
    ptrdiff_t step = rows_at_a_time(s);
    for (ptrdiff_t at = first; at < last && !s->is_interrupted; at += step) {
        ptrdiff_t n = last - at < step ? last - at : step;
        note_read(s, csr_times(&s->copy->rows, s->copy->which + at, n, vector, products + at));
    }
    for (ptrdiff_t i = first; i < last; i++)
        products[i] *= -s->labels[i];
}

void add_dual_weights(Solver *s, ptrdiff_t first, ptrdiff_t last, double sign, double *sum)
{
    ptrdiff_t step = rows_at_a_time(s);
    for (ptrdiff_t i = first; i < last; i++)
        s->spare[i] = sign * s->labels[i] * s->costs[i] * s->slopes[i];
    for (ptrdiff_t at = first; at < last && !s->is_interrupted; at += step) {
        ptrdiff_t n = last - at < step ? last - at : step;
        note_read(s, csr_add(&s->copy->rows, s->copy->which + at, n, s->spare + at, sum));
    }
}

static void gather(const double *vector, const ptrdiff_t *at, ptrdiff_t n, double *to)
{
    for (ptrdiff_t j = 0; j < n; j++)
        to[j] = vector[at[j]];
}

static void scatter(const double *vector, const ptrdiff_t *at, ptrdiff_t n, double *to)
{
    for (ptrdiff_t j = 0; j < n; j++)
        to[at[j]] = vector[j];
}

/* ---- features that are not there ---- */

static double product(const double a[2], const double b[2], const Absent *of)
{
    return a[0] * b[0] * of->gg + (a[0] * b[1] + a[1] * b[0]) * of->gl + a[1] * b[1] * of->ll;
}

Absent absent_now(const ActiveCopy *copy)
{
    const Absent *from = &copy->absent;
    const double *g = from->gradient, *l = from->last;
    return (Absent){
        .gradient = {1, 0},
        .last = {0, 1},
        .gg = product(g, g, from),
        .gl = product(g, l, from),
        .ll = product(l, l, from),
        .ug = g[0] * from->ug + g[1] * from->ul,
        .ul = l[0] * from->ug + l[1] * from->ul,
        .uu = from->uu,
    };
}

void absent_step(ActiveCopy *copy, double t_down, double t_last)
{
    double *g = copy->absent.gradient, *l = copy->absent.last;
    for (int i = 0; i < 2; i++) {
        l[i] = t_last * l[i] - t_down * g[i];
        g[i] += l[i];
    }
}

/* Where those of the copy below were, as sums of what they were even before. */
static void compose(Absent *later, const Absent *before)
{
    double *vectors[] = {later->gradient, later->last};
    for (int v = 0; v < 2; v++) {
        double of_gradient = vectors[v][0], of_last = vectors[v][1];
        for (int i = 0; i < 2; i++)
            vectors[v][i] = of_gradient * before->gradient[i] + of_last * before->last[i];
    }
}

/* Of those in the copy below that these rows leave out, and of those that are not in the copy below. */
static Absent absent_from(ActiveCopy *below, const CsrCopy *copy)
{
    Absent sums = absent_now(below);
    double *is_there = below->descent; /* which is made anew */
    memset(is_there, 0, (size_t)below->rows.n_features * sizeof(double));
    for (ptrdiff_t j = 0; j < copy->rows.n_features; j++)
        is_there[copy->features[j]] = 1;
    for (ptrdiff_t j = 0; j < below->rows.n_features; j++) {
        if (is_there[j] != 0)
            continue;
        double u = below->dual_weights[j], g = below->weights[j] - u, l = below->last[j];
        sums.gg += g * g;
        sums.gl += g * l;
        sums.ll += l * l;
        sums.ug += u * g;
        sums.ul += u * l;
        sums.uu += u * u;
    }
    return sums;
}

/* ---- copies ---- */

/* The mean square of every feature over the rows of a copy, by their costs: held-out rows have no curvature. */
static double *own_squares(const Solver *s, const Csr *copy, double *squares)
{
    const double *numbers = copy->numbers;
    const int32_t *columns = copy->columns, *starts = copy->starts;
    double cost = 0;
    memset(squares, 0, (size_t)copy->n_features * sizeof(double));
    for (ptrdiff_t i = 0; i < copy->n_rows; i++) {
        cost += s->costs[i];
        for (ptrdiff_t at = starts[i]; at < starts[i + 1]; at++)
            squares[columns[at]] += s->costs[i] * numbers[at] * numbers[at];
    }
    for (ptrdiff_t j = 0; j < copy->n_features; j++)
        squares[j] /= cost;
    return squares;
}

/* Put an active copy of these rows on top of the last one; they are freed without memory. */
static int push_copy(Solver *s, CsrCopy csr)
{
    ActiveCopy *below = s->copy, *copy = copy_new(&csr.rows, NULL);
    ptrdiff_t m = csr.rows.n_features;
    double *squares = below->mean_squares == NULL ? NULL : malloc((size_t)(m + 1) * sizeof(double));
    if (copy == NULL || (squares == NULL && below->mean_squares != NULL)) {
        csr_free(&csr);
        free(squares);
        copy_free(copy);
        return 0;
    }
    copy->csr = csr;
    copy->below = below;
    if (squares != NULL)
        copy->mean_squares = own_squares(s, &csr.rows, squares);
    copy->absent = absent_from(below, &csr);
    gather(below->weights, csr.features, m, copy->weights);
    gather(below->last, csr.features, m, copy->last);
    gather(below->dual_weights, csr.features, m, copy->dual_weights);
    gather(below->fixed_weights, csr.features, m, copy->fixed_weights);
    s->copy = copy;
    return 1;
}

int copy_active_rows(Solver *s)
{
    const ActiveCopy *below = s->copy;
    CsrCopy csr;
    double size = (double)csr_size(&below->rows, below->which, s->n_active);
    double all = (double)csr_size(&below->rows, below->which, below->rows.n_rows);
    if (size > MOST_COPIED * all || !csr_copy(&below->rows, below->which, s->n_active, &csr) || !push_copy(s, csr))
        return 0;
    restart_combination(s);
    renew_directions(s);
    return 1;
}

void sort_features(Solver *s)
{
    const ActiveCopy *all = s->copy;
    CsrCopy csr;
    int is_large = all->rows.n_features >= MANY_FEATURES && s->n_numbers >= MANY_NUMBERS;
    if (is_large && s->n_numbers <= MOST_NUMBERS && s->width > 0 &&
        csr_copy_by_frequency(&all->rows, all->which, &csr))
        push_copy(s, csr);
}

/* Weights and last step in the copy below, from where they were when the copy was made. */
static void move_below(const ActiveCopy *copy, const Absent *absent, double *weights, double *last)
{
    const ActiveCopy *below = copy->below;
    const double *g = absent->gradient, *l = absent->last;
    for (ptrdiff_t j = 0; j < below->rows.n_features; j++) {
        double u = below->dual_weights[j], gradient = below->weights[j] - u, step = below->last[j];
        weights[j] = u + g[0] * gradient + g[1] * step;
        if (last != NULL)
            last[j] = l[0] * gradient + l[1] * step;
    }
}

void pop_copy(Solver *s)
{
    ActiveCopy *copy = s->copy, *below = copy->below;
    const ptrdiff_t *features = copy->csr.features;
    ptrdiff_t m = copy->rows.n_features, *order = (ptrdiff_t *)s->spare;
    move_below(copy, &copy->absent, below->weights, below->last);
    scatter(copy->weights, features, m, below->weights);
    scatter(copy->last, features, m, below->last);
    memcpy(below->combined_weights, below->dual_weights, (size_t)below->rows.n_features * sizeof(double));
    scatter(copy->combined_weights, features, m, below->combined_weights);
    scatter(copy->dual_weights, features, m, below->dual_weights);
    compose(&copy->absent, &below->absent);
    memcpy(below->absent.gradient, copy->absent.gradient, sizeof copy->absent.gradient);
    memcpy(below->absent.last, copy->absent.last, sizeof copy->absent.last);
    for (ptrdiff_t i = 0; i < copy->rows.n_rows; i++)
        order[i] = below->which[copy->which[i]];
    memcpy(below->which, order, (size_t)copy->rows.n_rows * sizeof *order);
    s->copy = below;
    copy->below = NULL;
    free((void *)copy->mean_squares);
    copy_free(copy);
}

void write_weights(const Solver *s, double *weights)
{
    const ActiveCopy *copy = s->copy;
    const double *here = copy->weights;
    Absent absent = copy->absent;
    for (; copy->below != NULL; copy = copy->below) {
        double *there = copy->below->descent; /* nobody needs it before it is made anew */
        move_below(copy, &absent, there, NULL);
        scatter(here, copy->csr.features, copy->rows.n_features, there);
        compose(&absent, &copy->below->absent);
        here = there;
    }
    memcpy(weights, here, (size_t)copy->rows.n_features * sizeof(double));
}

ptrdiff_t original_row(const Solver *s, ptrdiff_t i)
{
    const ActiveCopy *copy = s->copy;
    while (copy->below != NULL && i >= copy->rows.n_rows)
        copy = copy->below;
    ptrdiff_t at = copy->which[i];
    for (copy = copy->below; copy != NULL; copy = copy->below)
        at = copy->which[at];
    return at;
}
