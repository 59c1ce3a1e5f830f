/* One pass over the rows of a class for the robust additive model (exclusivity.additive.objective).

   A row shows the point left[j] of column j, or a mixture of it and the next point. With the adversary's best
   moves, rounded with the width eps, its margin violation for q broken groups is

       v_q = 1 - f + max over 0 <= z <= 1, sum z <= q of z . D - eps/2 |z|^2 ,

   where D_g is the damage that the columns of group g can do. The pass adds up the loss of all v_q, the dual
   variables alpha = cost loss'(v_q), their conjugates, and what the adversary's rows show, weighted by alpha:
   own[p] for points that stay, moved[s] for the slices of points that broken cells reach.

   Where it is asked for, the pass also adds up the curvature in the coordinates (points, slices, intercept): of the
   loss, along what the adversary's row shows, and of the rounded choice of groups. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of one row, and what they need. */
typedef struct {
    double *floor;           /* the smallest value that is reached from each point */
    int32_t *first, *member; /* the columns of group g: member[first[g]] to member[first[g + 1] - 1] */
    const int32_t *left;     /* the row's points, and the weights of those to their right */
    const double *weight;
    double *share;   /* of each column: how much of its damage is done, if its group breaks */
    double *damage;  /* of each group */
    double *largest; /* damages, in falling order, one more than there are broken groups */
    int32_t *place;  /* groups that may break, their damages, and how much they break */
    double *of_place, *z;
    int n_places;
    double *broken;         /* of each column, weighted by alpha */
    double *moves, *bends;  /* how much each column breaks, and the curvature, for each q */
    double *mean;           /* of the moves */
    double *value;          /* a vector with few entries */
    int32_t *at;
    int n_entries;
    int most; /* the largest of the radii, at most n_groups */
} Row;

typedef struct {
    double value, slope, conjugate, curvature;
} Loss;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The n + 1 largest numbers, in falling order; zeros behind the last one. */
static void take_largest(const double *values, ptrdiff_t count, int n, double *largest)
{
    memset(largest, 0, ((size_t)n + 1) * sizeof(double));
    for (ptrdiff_t g = 0; g < count; g++) {
        if (values[g] <= largest[n])
            continue;
        int at = n;
        for (; at > 0 && largest[at - 1] < values[g]; at--)
            largest[at] = largest[at - 1];
        largest[at] = values[g];
    }
}

/* Only groups whose damage is near the largest ones may break. */
static void find_places(const AdditivePass *pass, Row *row)
{
    double low = larger(row->largest[row->most] - pass->eps, 0.0);
    int count = 0;
    for (ptrdiff_t g = 0; g < pass->n_groups; g++) {
        row->place[count] = (int32_t)g;
        row->of_place[count] = row->damage[g];
        count += row->damage[g] > low;
    }
    row->n_places = count;
}

/* z = clip((d - tau) / eps, 0, 1), where tau >= 0 is the smallest with sum z <= q: Newton's method in a bracket on a
   piecewise linear function. */
static void choose_groups(const AdditivePass *pass, Row *row, int q)
{
    double low = larger(row->largest[q] - pass->eps, 0.0), high = row->largest[q - 1], sum = 0.0;
    double inverse = 1 / pass->eps, tau = 0.5 * (low + high), *z = row->z;
    const double *d = row->of_place;
    for (int c = 0; c < row->n_places; c++)
        sum += z[c] = larger(smaller((d[c] - low) * inverse, 1.0), 0.0);
    if (sum <= q) /* then low is 0, or only rounding is in the way */
        return;
    for (int step = 1; step < 150; step++) { /* every third step halves the bracket */
        double total = 0.0;
        int n_inside = 0;
        for (int c = 0; c < row->n_places; c++) {
            double share = (d[c] - tau) * inverse;
            total += larger(smaller(share, 1.0), 0.0);
            n_inside += (share > 0.0) & (share < 1.0);
        }
        double surplus = total - q;
        if (fabs(surplus) <= 1e-12 * q)
            break;
        if (surplus > 0)
            low = tau;
        else
            high = tau;
        double newton = tau + surplus * pass->eps / (n_inside > 0 ? n_inside : 1);
        tau = step % 3 && n_inside > 0 && newton >= low && newton <= high ? newton : 0.5 * (low + high);
    }
    sum = 0.0;
    for (int c = 0; c < row->n_places; c++)
        sum += z[c] = larger(smaller((d[c] - tau) * inverse, 1.0), 0.0);
    if (sum > q)
        for (int c = 0; c < row->n_places; c++)
            z[c] *= q / sum;
}

/* A loss of cost 1 at a violation; the corner of the hinge is rounded by a parabola. */
static Loss loss_at(int loss, double violation, double width)
{
    if (loss == LOGISTIC) {
        double t = violation - 1, e = exp(-fabs(t)), logarithm = log1p(e), right = 1 / (1 + e), wrong = e * right;
        double slope = t > 0 ? right : wrong;
        return (Loss){larger(t, 0.0) + logarithm, slope, slope - fabs(t) * wrong - logarithm, right * wrong};
    }
    double positive = larger(violation, 0.0), square = positive * positive;
    if (loss == SQUARED_HINGE)
        return (Loss){square, 2 * positive, square, positive > 0 ? 2.0 : 0.0};
    if (positive > width)
        return (Loss){positive - width / 2, 1.0, 0.0, 0.0};
    return (Loss){width > 0 ? square / (2 * width) : 0.0, width > 0 ? positive / width : 0.0, 0.0,
                  positive > 0 ? 1 / width : 0.0};
}

/* ---- curvature ---- */

static void append_entry(Row *row, ptrdiff_t at, double value)
{
    if (value != 0.0) {
        row->at[row->n_entries] = (int32_t)at;
        row->value[row->n_entries++] = value;
    }
}

/* The slice that the cell of column j reaches. */
static inline int32_t slice_of(const AdditivePass *pass, const Row *row, ptrdiff_t j)
{
    return pass->reach[row->left[j] + (pass->shifted[j] && row->weight[j] > 0)];
}

/* The derivative of the damage of column j: what the cell shows minus what it reaches. */
static void append_damage(const AdditivePass *pass, Row *row, ptrdiff_t j, double factor)
{
    append_entry(row, row->left[j], factor * (1 - row->weight[j]));
    append_entry(row, row->left[j] + 1, factor * row->weight[j]);
    append_entry(row, pass->n_points + 1 + slice_of(pass, row, j), -factor);
}

/* Add factor v v' to the upper triangle, with the entries of v behind the first ones. Places need not be in order,
   nor distinct. */
static void add_outer(const AdditivePass *pass, const Row *row, int from, double factor)
{
    const int32_t *at = row->at;
    const double *value = row->value;
    for (int a = from; a < row->n_entries; a++) {
        double *upper = pass->hessian + at[a] * pass->size, scaled = factor * value[a];
        upper[at[a]] += scaled * value[a];
        for (int b = a + 1; b < row->n_entries; b++) {
            double both = scaled * value[b];
            if (at[a] < at[b])
                upper[at[b]] += both;
            else if (at[a] > at[b])
                pass->hessian[at[b] * pass->size + at[a]] += both;
            else
                upper[at[a]] += 2 * both;
        }
    }
}

/* Add the curvature of the loss of one row. With psi_q = phi - sum of z_qj v_j, where v_j is the derivative of the
   damage of column j, and the mean m of z weighted by the curvatures w_q,

       sum w_q psi_q psi_q' = W psi_m psi_m' + sum w_q d_q d_q',   d_q = sum of (z_qj - m_j) v_j ,

   where d_q has few entries: only columns that break for some q, and not for all. */
static void add_loss_curvature(const AdditivePass *pass, Row *row)
{
    ptrdiff_t M = pass->n_columns, R = pass->n_radii;
    double total = 0.0, *mean = row->mean;
    for (ptrdiff_t k = 0; k < R; k++)
        total += row->bends[k];
    if (total <= 0)
        return;
    memset(mean, 0, (size_t)M * sizeof(double));
    for (ptrdiff_t k = 0; k < R; k++)
        for (ptrdiff_t j = 0; j < M && row->bends[k] > 0; j++)
            mean[j] += row->bends[k] / total * row->moves[k * M + j];
    row->n_entries = 0;
    for (ptrdiff_t j = 0; j < M; j++) {
        append_entry(row, row->left[j], (1 - mean[j]) * (1 - row->weight[j]));
        append_entry(row, row->left[j] + 1, (1 - mean[j]) * row->weight[j]);
    }
    for (ptrdiff_t j = 0; j < M; j++)
        append_entry(row, pass->n_points + 1 + slice_of(pass, row, j), mean[j]);
    append_entry(row, pass->size - 1, 1.0);
    add_outer(pass, row, 0, total);
    for (ptrdiff_t k = 0; k < R; k++) {
        row->n_entries = 0;
        for (ptrdiff_t j = 0; j < M && row->bends[k] > 0; j++)
            if (row->moves[k * M + j] != mean[j])
                append_damage(pass, row, j, row->moves[k * M + j] - mean[j]);
        add_outer(pass, row, 0, row->bends[k]);
    }
}

/* Add the curvature of the rounded choice of q groups. */
static void add_choice_curvature(const AdditivePass *pass, Row *row, int q, double alpha)
{
    int n_partial = 0;
    double sum = 0.0, bend = alpha / pass->eps;
    row->n_entries = 0;
    for (int c = 0; c < row->n_places; c++) {
        int from = row->n_entries;
        sum += row->z[c];
        if (row->z[c] <= 1e-9 || row->z[c] >= 1 - 1e-9)
            continue;
        n_partial++;
        for (int32_t m = row->first[row->place[c]]; m < row->first[row->place[c] + 1]; m++)
            append_damage(pass, row, row->member[m], row->share[row->member[m]]);
        add_outer(pass, row, from, bend);
    }
    if (n_partial && sum > q - 1e-9)
        add_outer(pass, row, 0, -bend / n_partial);
    for (int c = 0; c < row->n_places; c++)
        for (int32_t m = row->first[row->place[c]]; m < row->first[row->place[c] + 1]; m++) {
            int32_t j = row->member[m];
            if (row->z[c] > 0 && row->share[j] > 0 && row->share[j] < 1) {
                row->n_entries = 0;
                append_damage(pass, row, j, 1.0);
                add_outer(pass, row, 0, row->z[c] * bend);
            }
        }
}

/* ---- the pass ---- */

/* Score, damages of the groups and the largest of them. A cell of a group with several columns can stay what it is:
   its damage is max over 0 <= t <= 1 of t d - eps/2 t^2. Where a column is a group of its own, z does that. */
static double read_row(const AdditivePass *pass, Row *row, ptrdiff_t i)
{
    ptrdiff_t M = pass->n_columns;
    int is_single = M == pass->n_groups;
    double score = pass->intercept;
    row->left = pass->left + i * M;
    row->weight = pass->weight + i * M;
    memset(row->damage, 0, (size_t)pass->n_groups * sizeof(double));
    for (ptrdiff_t j = 0; j < M; j++) {
        int32_t left = row->left[j];
        double weight = row->weight[j];
        double value = pass->points[left] + weight * (pass->points[left + 1] - pass->points[left]);
        double d = larger(value - row->floor[left + (pass->shifted[j] & (weight > 0))], 0.0);
        score += value;
        if (!is_single && pass->eps > 0) {
            double share = row->share[j] = smaller(d / pass->eps, 1.0);
            d = share * (d - pass->eps / 2 * share);
        }
        row->damage[pass->group[j]] += d;
    }
    take_largest(row->damage, pass->n_groups, row->most, row->largest);
    return score;
}

/* The rounded damage of q groups of a row. */
static double damage_of(const AdditivePass *pass, Row *row, int q)
{
    double found = 0.0;
    if (pass->eps == 0)
        for (int g = 0; g < q; g++)
            found += row->largest[g];
    if (pass->eps == 0 || q == 0)
        return found;
    choose_groups(pass, row, q);
    for (int c = 0; c < row->n_places; c++)
        found += row->z[c] * (row->of_place[c] - pass->eps / 2 * row->z[c]);
    return found;
}

static void run_pass(const AdditivePass *pass, Row *row)
{
    ptrdiff_t M = pass->n_columns;
    double factor = (double)pass->n_rows / (double)((pass->n_rows + pass->step - 1) / pass->step);
    for (ptrdiff_t i = 0; i < pass->n_rows; i += pass->step) {
        double violation = 1 - read_row(pass, row, i), worst = violation, total_alpha = 0.0;
        for (int g = 0; g < row->most; g++)
            worst += row->largest[g];
        if (pass->loss != LOGISTIC && worst <= 0)
            continue;
        if (pass->eps > 0)
            find_places(pass, row);
        if (pass->hessian != NULL) {
            memset(row->bends, 0, (size_t)pass->n_radii * sizeof(double));
            memset(row->moves, 0, (size_t)(pass->n_radii * M) * sizeof(double));
        }
        for (ptrdiff_t k = 0; k < pass->n_radii; k++) {
            int q = pass->radii[k] < row->most ? pass->radii[k] : row->most;
            double cost = factor * pass->cost[i] * pass->shares[k];
            Loss loss = loss_at(pass->loss, violation + damage_of(pass, row, q), pass->eps);
            pass->totals[0] += cost * loss.value;
            double alpha = cost * loss.slope;
            if (pass->eps == 0 || alpha <= 0)
                continue;
            pass->totals[1] += alpha;
            pass->totals[2] += cost * loss.conjugate;
            if (total_alpha == 0.0)
                memset(row->broken, 0, (size_t)M * sizeof(double));
            total_alpha += alpha;
            for (int c = 0; c < row->n_places && q > 0; c++)
                for (int32_t m = row->first[row->place[c]]; m < row->first[row->place[c] + 1]; m++) {
                    int32_t j = row->member[m];
                    row->broken[j] += alpha * row->z[c] * row->share[j];
                    if (pass->hessian != NULL)
                        row->moves[k * M + j] = row->z[c] * row->share[j];
                }
            if (pass->hessian != NULL) {
                row->bends[k] = cost * loss.curvature;
                if (q > 0)
                    add_choice_curvature(pass, row, q, alpha);
            }
        }
        if (total_alpha <= 0)
            continue;
        if (pass->hessian != NULL)
            add_loss_curvature(pass, row);
        for (ptrdiff_t j = 0; j < M; j++) {
            double stays = total_alpha - row->broken[j];
            pass->own[row->left[j]] += (1 - row->weight[j]) * stays;
            pass->own[row->left[j] + 1] += row->weight[j] * stays;
            if (row->broken[j] > 0)
                pass->moved[slice_of(pass, row, j)] += row->broken[j];
        }
    }
}

/* Room for the numbers of one row in one piece of memory; NULL if there is none. */
static void *take_room(const AdditivePass *pass, Row *row)
{
    size_t M = (size_t)pass->n_columns, G = (size_t)pass->n_groups, R = (size_t)pass->n_radii;
    size_t n_points = (size_t)pass->n_points + 1, n_largest = (size_t)row->most + 1;
    struct {
        double **vector;
        size_t size;
    } doubles[] = {{&row->floor, n_points}, {&row->share, M},           {&row->broken, M}, {&row->damage, G},
                   {&row->of_place, G},     {&row->z, G},               {&row->bends, R},  {&row->largest, n_largest},
                   {&row->moves, R * M},    {&row->mean, M},            {&row->value, 3 * M + 1}};
    size_t n_doubles = 0, n_vectors = sizeof doubles / sizeof *doubles, n_indices = (G + 1) + M + G + (3 * M + 1);
    for (size_t v = 0; v < n_vectors; v++)
        n_doubles += doubles[v].size;
    double *memory = malloc(n_doubles * sizeof(double) + n_indices * sizeof(int32_t)), *next = memory;
    if (memory == NULL)
        return NULL;
    for (size_t v = 0; v < n_vectors; next += doubles[v++].size)
        *doubles[v].vector = next;
    row->first = (int32_t *)next;
    row->member = row->first + G + 1;
    row->place = row->member + M;
    row->at = row->place + G;
    return memory;
}

int additive_run(const AdditivePass *pass)
{
    Row row = {.most = 0};
    for (ptrdiff_t k = 0; k < pass->n_radii; k++)
        row.most = pass->radii[k] > row.most ? pass->radii[k] : row.most;
    row.most = row.most < pass->n_groups ? row.most : (int)pass->n_groups;
    void *memory = take_room(pass, &row);
    if (memory == NULL)
        return 0;
    for (ptrdiff_t p = 0; p <= pass->n_points; p++)
        row.floor[p] = pass->low[pass->reach[p]];
    memset(row.first, 0, ((size_t)pass->n_groups + 1) * sizeof(int32_t));
    for (ptrdiff_t j = 0; j < pass->n_columns; j++) {
        row.share[j] = 1.0;
        row.first[pass->group[j]]++;
    }
    for (ptrdiff_t g = 1; g <= pass->n_groups; g++) /* where the columns of each group end, and then where they start */
        row.first[g] += row.first[g - 1];
    for (ptrdiff_t j = pass->n_columns; j-- > 0;)
        row.member[--row.first[pass->group[j]]] = (int32_t)j;
    run_pass(pass, &row);
    free(memory);
    return 1;
}
