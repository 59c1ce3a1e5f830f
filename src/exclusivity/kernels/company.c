/* Walks in company: products with all rows are shared.

   A walk goes on by itself as long as it can. Where it wants a product with most of the rows, it waits until each of
   the others wants one or has ended: these products are then made together. Each is what it would have been alone, to
   the last bit, so that no walk depends on its company. */

#include "together.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)MOST_WALKS <= (int)MOST_TOGETHER, "each walk has its place in a product");

/* A number of every feature, and of every row, for each of MOST_TOGETHER vectors. */
typedef struct {
    double *of_features, *of_rows;
} Panels;

/* 0 without memory: products are made one by one then. */
static int make_panels(Panels *panels, const Rows *rows)
{
    size_t n_features = MOST_TOGETHER * (size_t)rows->n_features, n_rows = MOST_TOGETHER * (size_t)rows->n_rows;
    if (panels->of_features == NULL) {
        panels->of_features = calloc(n_features + n_rows, sizeof(double));
        panels->of_rows = panels->of_features == NULL ? NULL : panels->of_features + n_features;
    }
    return panels->of_features != NULL;
}

/* Vectors of n numbers side by side. */
static void lay(const double *const *vectors, int n_vectors, ptrdiff_t n, double *panel)
{
    for (ptrdiff_t j = 0; j < n; j++)
        for (int v = 0; v < n_vectors; v++)
            panel[MOST_TOGETHER * j + v] = vectors[v][j];
}

/* How many numbers ``add_pulls`` would read: those of rows with a factor. */
static ptrdiff_t numbers_to_add(const Walk *k)
{
    ptrdiff_t n_read = (ptrdiff_t)k->n_numbers;
    for (ptrdiff_t i = 0; i < k->n_rows; i++)
        if (k->spare[i] == 0)
            n_read -= rows_size(&k->view->rows, k->view->which + i, 1);
    return n_read;
}

typedef void Pass(const Rows *rows, ptrdiff_t first, ptrdiff_t last, const double *from, double *to);

/* A pass over all rows, some of them at a time: Ctrl-C, which the first walk hears, ends it. */
static void pass_over(Pass *pass, Walk *first, int n_walks, const double *from, double *to)
{
    const Rows *rows = &first->view->rows;
    ptrdiff_t step = 1 + rows_at_a_time(first) / n_walks;
    for (ptrdiff_t at = 0; at < rows->n_rows && !first->is_interrupted; at += step) {
        ptrdiff_t end = at + step < rows->n_rows ? at + step : rows->n_rows;
        pass(rows, at, end, from, to);
        hear(first, (n_walks - 1) * first->n_numbers * (double)(end - at) / (double)rows->n_rows);
    }
}

/* The wanted products of this number, one of each walk. */
static void make_together(Walk *const *walks, int n_walks, int number, Panels panels)
{
    const Rows *rows = &walks[0]->view->rows;
    const double *vectors[MOST_WALKS];
    for (int v = 0; v < n_walks; v++)
        vectors[v] = walks[v]->wanted[number].vector;
    lay(vectors, n_walks, rows->n_features, panels.of_features);
    pass_over(together_times, walks[0], n_walks, panels.of_features, panels.of_rows);
    for (int v = 0; v < n_walks; v++) {
        Walk *k = walks[v];
        Product product = k->wanted[number];
        const ptrdiff_t *which = k->view->which;
        for (ptrdiff_t i = product.first; i < product.last; i++)
            product.shortfalls[i] = -k->labels[i] * panels.of_rows[MOST_TOGETHER * which[i] + v];
        note_read(k, rows_size(rows, which + product.first, product.last - product.first));
    }
}

/* The first pulls, of all rows in their order. */
static void pull_together(Walk *const *walks, int n_walks, Panels panels)
{
    const Rows *rows = &walks[0]->view->rows;
    const double *factors[MOST_WALKS];
    memset(panels.of_features, 0, MOST_TOGETHER * (size_t)rows->n_features * sizeof(double));
    for (int v = 0; v < n_walks; v++) {
        take_factors(walks[v], 0, rows->n_rows, 1.0);
        factors[v] = walks[v]->spare;
    }
    lay(factors, n_walks, rows->n_rows, panels.of_rows);
    pass_over(together_add, walks[0], n_walks, panels.of_rows, panels.of_features);
    for (int v = 0; v < n_walks; v++) {
        double *pulls = walks[v]->view->dual_weights;
        for (ptrdiff_t j = 0; j < rows->n_features; j++)
            pulls[j] = panels.of_features[MOST_TOGETHER * j + v];
        note_read(walks[v], numbers_to_add(walks[v]));
    }
}

/* What all walks are waiting for. */
static void serve(Walk *const *walks, int n_walks, Panels *panels)
{
    Walk *waiting[MOST_WALKS];
    int n;
    for (int number = 0; number < MOST_WANTED; number++) {
        n = 0;
        for (int i = 0; i < n_walks; i++)
            if (number < walks[i]->n_wanted)
                waiting[n++] = walks[i];
        if (n > 1 && make_panels(panels, &waiting[0]->view->rows))
            make_together(waiting, n, number, *panels);
        else
            for (int i = 0; i < n; i++)
                make_product(waiting[i], waiting[i]->wanted[number]);
    }
    n = 0;
    for (int i = 0; i < n_walks; i++)
        if (walks[i]->wants_pulls)
            waiting[n++] = walks[i];
    if (n > 1 && make_panels(panels, &waiting[0]->view->rows))
        pull_together(waiting, n, *panels);
    else
        for (int i = 0; i < n; i++)
            add_pulls(waiting[i], 0, waiting[i]->n_rows, 1.0, waiting[i]->view->dual_weights);
    for (int i = 0; i < n_walks; i++)
        walks[i]->n_wanted = walks[i]->wants_pulls = 0;
}

/* Walks that are on go on; those that wait then are put into ``waiting``, unless Ctrl-C ends them all. */
static int advance(Walk *const *walks, int n_walks, Ending *endings, Walk **waiting)
{
    int n_waiting = 0, is_interrupted = 0;
    for (int i = 0; i < n_walks; i++) {
        if (endings[i] == IS_WAITING && !is_interrupted)
            endings[i] = walk_on(walks[i]);
        is_interrupted |= endings[i] == IS_INTERRUPTED;
        if (endings[i] == IS_WAITING)
            waiting[n_waiting++] = walks[i];
    }
    return is_interrupted ? 0 : n_waiting;
}

void walks_on(Walk *const *walks, int n_walks, const double *goals, int most_steps, Ending *endings)
{
    Panels panels = {NULL, NULL};
    Walk *waiting[MOST_WALKS];
    int n_waiting;
    for (int i = 0; i < n_walks; i++) {
        walks[i]->goal = goals[i];
        walks[i]->n_steps_left = most_steps;
        endings[i] = IS_WAITING;
    }
    while ((n_waiting = advance(walks, n_walks, endings, waiting)) > 0)
        serve(waiting, n_waiting, &panels);
    free(panels.of_features);
}
