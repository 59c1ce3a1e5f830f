/* Rows and features as a walk sees them: products with the rows, and copies of those in play.

   Few rows in play are worth a copy: their numbers fit into a cache, and so do vectors of the features that occur in
   them. The other features are a matter of the rows left out alone, whose pull u_j does not change. Minus their
   gradient, u_j - w_j, is their direction downhill (they have no curvature), so that steps leave gradient g and last
   step l among the sums of what these two were in the beginning: four numbers tell where they all are. */

#include "walk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NUMBERS (1 << 23) /* some hundredths of a second */
#define MOST_COPIED 0.25 /* of a view: a third of X in doubles at the most, with copies of copies */

/* Features are sorted where they are so many that vectors of them do not fit into a cache, the loss takes many passes and
   numbers are so many: 20,000 x 1,000,000 with 360 numbers per row take 34 instead of 72 ms per pass. */
#define MANY_FEATURES (1 << 18)
#define MANY_NUMBERS (1 << 20)
#define MOST_NUMBERS (1 << 24)

enum { N_VECTORS = 6 };

View *view_new(const Rows *rows, const double *mean_squares)
{
    size_t n = (size_t)rows->n_rows, m = (size_t)rows->n_features;
    View *view = calloc(1, sizeof *view);
    double *memory = view == NULL ? NULL : calloc(N_VECTORS * m + n + 1, sizeof(double));
    if (memory == NULL) {
        free(view);
        return NULL;
    }
    double **vectors[] = {&view->weights,         &view->dual_weights,  &view->last,
                          &view->blended_weights, &view->fixed_weights, &view->downhill};
    for (size_t v = 0; v < N_VECTORS; v++)
        *vectors[v] = memory + v * m;
    view->which = (ptrdiff_t *)(memory + N_VECTORS * m);
    for (size_t i = 0; i < n; i++)
        view->which[i] = (ptrdiff_t)i;
    view->rows = *rows;
    view->mean_squares = mean_squares;
    view->absent.gradient[0] = view->absent.last[1] = 1;
    view->memory = memory;
    return view;
}

void view_free(View *view)
{
    while (view != NULL) {
        View *below = view->below;
        if (below != NULL)
            free((void *)view->mean_squares);
        rows_free(&view->copy);
        free(view->memory);
        free(view);
        view = below;
    }
}

/* ---- products ---- */

void hear(Walk *k, double n_numbers)
{
    k->n_since_poll += n_numbers;
    if (k->n_since_poll >= POLL_NUMBERS && !k->is_interrupted) {
        k->n_since_poll = 0;
        k->is_interrupted = k->poll(k->context) != 0;
    }
}

void note_read(Walk *k, ptrdiff_t n_read)
{
    k->n_read += (double)n_read;
    hear(k, (double)n_read);
}

ptrdiff_t rows_at_a_time(const Walk *k)
{
    return 1 + (ptrdiff_t)(POLL_NUMBERS / (1 + k->n_numbers / (double)k->n_rows));
}

void make_product(Walk *k, Product product)
{
    ptrdiff_t step = rows_at_a_time(k);
    for (ptrdiff_t at = product.first; at < product.last && !k->is_interrupted; at += step) {
        ptrdiff_t n = product.last - at < step ? product.last - at : step;
        note_read(k, rows_times(&k->view->rows, k->view->which + at, n, product.vector, product.shortfalls + at));
    }
    for (ptrdiff_t i = product.first; i < product.last; i++)
        product.shortfalls[i] *= -k->labels[i];
}

void want(Walk *k, Product product)
{
    if (k->view->below == NULL && 2 * (product.last - product.first) > k->n_rows)
        k->wanted[k->n_wanted++] = product;
    else
        make_product(k, product);
}

void take_factors(Walk *k, ptrdiff_t first, ptrdiff_t last, double sign)
{
    for (ptrdiff_t i = first; i < last; i++)
        k->spare[i] = sign * k->labels[i] * k->costs[i] * k->slopes[i];
}

void add_pulls(Walk *k, ptrdiff_t first, ptrdiff_t last, double sign, double *sum)
{
    ptrdiff_t step = rows_at_a_time(k);
    take_factors(k, first, last, sign);
    for (ptrdiff_t at = first; at < last && !k->is_interrupted; at += step) {
        ptrdiff_t n = last - at < step ? last - at : step;
        note_read(k, rows_add(&k->view->rows, k->view->which + at, n, k->spare + at, sum));
    }
}

static double *taken(const double *vector, const ptrdiff_t *at, ptrdiff_t n, double *to)
{
    for (ptrdiff_t j = 0; j < n; j++)
        to[j] = vector[at[j]];
    return to;
}

static void put(const double *vector, const ptrdiff_t *at, ptrdiff_t n, double *to)
{
    for (ptrdiff_t j = 0; j < n; j++)
        to[at[j]] = vector[j];
}

/* ---- features that are not there ---- */

static double product(const double a[2], const double b[2], const Absent *of)
{
    return a[0] * b[0] * of->gg + (a[0] * b[1] + a[1] * b[0]) * of->gl + a[1] * b[1] * of->ll;
}

Absent absent_now(const View *view)
{
    const Absent *from = &view->absent;
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

void absent_step(View *view, double t_down, double t_last)
{
    double *g = view->absent.gradient, *l = view->absent.last;
    for (int i = 0; i < 2; i++) {
        l[i] = t_last * l[i] - t_down * g[i];
        g[i] += l[i];
    }
}

/* Where those of the view below were, as sums of what they were even before. */
static void compose(Absent *later, const Absent *before)
{
    double *vectors[] = {later->gradient, later->last};
    for (int v = 0; v < 2; v++) {
        double of_gradient = vectors[v][0], of_last = vectors[v][1];
        for (int i = 0; i < 2; i++)
            vectors[v][i] = of_gradient * before->gradient[i] + of_last * before->last[i];
    }
}

/* Of those in the view below that a copy leaves out, and of those that are not in the view below. */
static Absent absent_from(View *below, const RowsCopy *copy)
{
    Absent sums = absent_now(below);
    double *is_there = below->downhill; /* which is made anew */
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

/* The mean square of every feature over the rows of a copy, by their costs: the rows left out have no curvature. */
static double *own_squares(const Walk *k, const Rows *copy, double *squares)
{
    const double *numbers = copy->numbers;
    const int32_t *columns = copy->columns, *starts = copy->starts;
    double cost = 0;
    memset(squares, 0, (size_t)copy->n_features * sizeof(double));
    for (ptrdiff_t i = 0; i < copy->n_rows; i++) {
        cost += k->costs[i];
        for (ptrdiff_t at = starts[i]; at < starts[i + 1]; at++)
            squares[columns[at]] += k->costs[i] * numbers[at] * numbers[at];
    }
    for (ptrdiff_t j = 0; j < copy->n_features; j++)
        squares[j] /= cost;
    return squares;
}

/* A view of a copy on top of the last one; the copy is gone without memory. */
static int add_view(Walk *k, RowsCopy copy)
{
    View *below = k->view, *view = view_new(&copy.rows, NULL);
    ptrdiff_t m = copy.rows.n_features;
    double *squares = below->mean_squares == NULL ? NULL : malloc((size_t)(m + 1) * sizeof(double));
    if (view == NULL || (squares == NULL && below->mean_squares != NULL)) {
        rows_free(&copy);
        free(squares);
        view_free(view);
        return 0;
    }
    view->copy = copy;
    view->below = below;
    if (squares != NULL)
        view->mean_squares = own_squares(k, &copy.rows, squares);
    view->absent = absent_from(below, &copy);
    taken(below->weights, copy.features, m, view->weights);
    taken(below->last, copy.features, m, view->last);
    taken(below->dual_weights, copy.features, m, view->dual_weights);
    taken(below->fixed_weights, copy.features, m, view->fixed_weights);
    k->view = view;
    return 1;
}

int copy_view(Walk *k)
{
    const View *below = k->view;
    RowsCopy copy;
    double size = (double)rows_size(&below->rows, below->which, k->n_in_play);
    double all = (double)rows_size(&below->rows, below->which, below->rows.n_rows);
    if (size > MOST_COPIED * all || !rows_copy(&below->rows, below->which, k->n_in_play, &copy) || !add_view(k, copy))
        return 0;
    forget_blend(k);
    take_directions(k);
    return 1;
}

void sort_view(Walk *k)
{
    const View *all = k->view;
    RowsCopy copy;
    int is_large = all->rows.n_features >= MANY_FEATURES && k->n_numbers >= MANY_NUMBERS;
    if (is_large && k->n_numbers <= MOST_NUMBERS && k->width > 0 && rows_copy_frequent_first(&all->rows, all->which, &copy))
        add_view(k, copy);
}

/* Weights and last step in the view below, from where they were when the copy was made. */
static void move_below(const View *view, const Absent *absent, double *weights, double *last)
{
    const View *below = view->below;
    const double *g = absent->gradient, *l = absent->last;
    for (ptrdiff_t j = 0; j < below->rows.n_features; j++) {
        double u = below->dual_weights[j], gradient = below->weights[j] - u, step = below->last[j];
        weights[j] = u + g[0] * gradient + g[1] * step;
        if (last != NULL)
            last[j] = l[0] * gradient + l[1] * step;
    }
}

void drop_view(Walk *k)
{
    View *view = k->view, *below = view->below;
    const ptrdiff_t *features = view->copy.features;
    ptrdiff_t m = view->rows.n_features, *order = (ptrdiff_t *)k->spare;
    move_below(view, &view->absent, below->weights, below->last);
    put(view->weights, features, m, below->weights);
    put(view->last, features, m, below->last);
    memcpy(below->blended_weights, below->dual_weights, (size_t)below->rows.n_features * sizeof(double));
    put(view->blended_weights, features, m, below->blended_weights);
    put(view->dual_weights, features, m, below->dual_weights);
    compose(&view->absent, &below->absent);
    memcpy(below->absent.gradient, view->absent.gradient, sizeof view->absent.gradient);
    memcpy(below->absent.last, view->absent.last, sizeof view->absent.last);
    for (ptrdiff_t i = 0; i < view->rows.n_rows; i++)
        order[i] = below->which[view->which[i]];
    memcpy(below->which, order, (size_t)view->rows.n_rows * sizeof *order);
    k->view = below;
    view->below = NULL;
    free((void *)view->mean_squares);
    view_free(view);
}

void write_weights(const Walk *k, double *weights)
{
    const View *view = k->view;
    const double *here = view->weights;
    Absent absent = view->absent;
    for (; view->below != NULL; view = view->below) {
        double *there = view->below->downhill; /* nobody needs it before it is made anew */
        move_below(view, &absent, there, NULL);
        put(here, view->copy.features, view->rows.n_features, there);
        compose(&absent, &view->below->absent);
        here = there;
    }
    memcpy(weights, here, (size_t)view->rows.n_features * sizeof(double));
}

ptrdiff_t original_row(const Walk *k, ptrdiff_t i)
{
    const View *view = k->view;
    while (view->below != NULL && i >= view->rows.n_rows)
        view = view->below;
    ptrdiff_t at = view->which[i];
    for (view = view->below; view != NULL; view = view->below)
        at = view->which[at];
    return at;
}
