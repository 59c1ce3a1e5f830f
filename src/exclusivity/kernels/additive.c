/* One pass over the rows of a class for the robust additive model (exclusivity.additive.objective).

   A row shows the point left[j] of column j, or a mixture of it and the next point. With the adversary's best
   moves, rounded with the width eps, its margin violation for q broken groups is

       v_q = 1 - f + max over 0 <= z <= 1, sum z <= q of z . D - eps/2 |z|^2 ,

   where D_g is the damage that the columns of group g can do. The pass adds up the loss of all v_q, the dual
   variables alpha = cost loss'(v_q), their conjugates, and what the adversary's rows show, weighted by alpha:
   own[p] for points that stay, moved[s] for the slices of points that broken cells reach.

   Where it is asked for, the pass also adds up the curvature in the coordinates (points, slices, intercept): of the
   loss, along what the adversary's row shows, and of the rounded choice of groups. */

#include "arrays.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SQUARED_HINGE, HINGE, LOGISTIC };

typedef struct {
    const int32_t *left;    /* n_rows x n_columns */
    const double *weight;   /* n_rows x n_columns, of the point to the right */
    const double *cost;     /* n_rows */
    const double *points;   /* n_points + 1 values, seen from the class of the rows */
    const int32_t *reach;   /* the slice that is reached from each point */
    const double *low;      /* the smallest value of each slice; infinite: nothing is reached */
    const int32_t *shifted; /* columns where a mixture reaches what its right point does */
    const int32_t *group;   /* of every column */
    const int32_t *radii;
    const double *shares; /* of the loss, for each of the radii */
    double *own, *moved, *totals;
    double *hessian; /* upper triangle, (n_points + n_slices + 2) squared; NULL: not wanted */
    Py_ssize_t n_rows, n_columns, n_points, n_slices, n_groups, n_radii;
    double intercept, eps; /* eps = 0: the loss without any smoothing, and nothing else */
    int loss, step;        /* every step-th row, with the costs of all */
} Pass;

/* The n + 1 largest numbers, in falling order; zeros behind the last one. */
static void take_largest(const double *values, Py_ssize_t count, int n, double *largest)
{
    memset(largest, 0, ((size_t)n + 1) * sizeof(double));
    for (Py_ssize_t g = 0; g < count; g++) {
        if (values[g] <= largest[n])
            continue;
        int at = n;
        for (; at > 0 && largest[at - 1] < values[g]; at--)
            largest[at] = largest[at - 1];
        largest[at] = values[g];
    }
}

/* z = clip((d - tau) / eps, 0, 1), where tau >= 0 is the smallest with sum z <= q: Newton's method in a bracket on a
   piecewise linear function. Only groups whose damage is above the lower end of the bracket have z > 0: their number
   is returned, their places and z are written. */
static Py_ssize_t select_groups(const double *damage, Py_ssize_t n, int q, double eps, const double *largest,
                                int32_t *place, double *z)
{
    if (q == 0)
        return 0;
    double low = fmax(largest[q] - eps, 0.0), high = largest[q - 1], tau = low, sum = 0.0;
    Py_ssize_t count = 0;
    for (Py_ssize_t g = 0; g < n; g++)
        if (damage[g] > low) {
            z[count] = fmin((damage[g] - low) / eps, 1.0);
            sum += z[count];
            place[count++] = (int32_t)g;
        }
    if (sum <= q) /* then low is 0, or only rounding is in the way */
        return count;
    tau = 0.5 * (low + high);
    for (int step = 1; step < 150; step++) { /* every third step halves the bracket */
        double total = 0.0;
        int n_inside = 0;
        for (Py_ssize_t c = 0; c < count; c++) {
            double share = (damage[place[c]] - tau) / eps;
            if (share >= 1.0)
                total += 1.0;
            else if (share > 0.0) {
                total += share;
                n_inside++;
            }
        }
        double surplus = total - q;
        if (fabs(surplus) <= 1e-12 * q)
            break;
        if (surplus > 0)
            low = tau;
        else
            high = tau;
        double newton = tau + surplus * eps / (n_inside > 0 ? n_inside : 1);
        tau = step % 3 && n_inside > 0 && newton >= low && newton <= high ? newton : 0.5 * (low + high);
    }
    sum = 0.0;
    for (Py_ssize_t c = 0; c < count; c++) {
        z[c] = fmin(fmax((damage[place[c]] - tau) / eps, 0.0), 1.0);
        sum += z[c];
    }
    if (sum > q)
        for (Py_ssize_t c = 0; c < count; c++)
            z[c] *= q / sum;
    return count;
}

/* Value, slope and conjugate of a loss at a violation, for cost 1. */
static void evaluate(int loss, double violation, double width, double *value, double *slope, double *conjugate,
                     double *curvature)
{
    if (loss == LOGISTIC) {
        double t = violation - 1, e = exp(-fabs(t)), logarithm = log1p(e), right = 1 / (1 + e), wrong = e * right;
        *value = fmax(t, 0.0) + logarithm;
        *slope = t > 0 ? right : wrong;
        *conjugate = *slope - fabs(t) * wrong - logarithm;
        *curvature = right * wrong;
        return;
    }
    double positive = fmax(violation, 0.0);
    if (loss == SQUARED_HINGE) {
        *value = *conjugate = positive * positive;
        *slope = 2 * positive;
        *curvature = positive > 0 ? 2.0 : 0.0;
        return;
    }
    int is_inside = positive <= width; /* the corner is rounded by a parabola */
    *value = is_inside ? positive * positive / (2 * width) : positive - width / 2;
    *slope = is_inside ? positive / width : 1.0;
    *curvature = is_inside && positive > 0 ? 1 / width : 0.0;
    *conjugate = 0.0;
}

/* Coordinates of a vector with few of them. */
typedef struct {
    int32_t *place;
    double *value;
    int count;
} Entries;

static void append_entry(Entries *entries, Py_ssize_t place, double value)
{
    if (value != 0.0) {
        entries->place[entries->count] = (int32_t)place;
        entries->value[entries->count++] = value;
    }
}

/* Add factor v v' to the upper triangle. Places need not be in order, nor distinct. */
static void add_outer(double *hessian, Py_ssize_t size, const Entries *v, int from, double factor)
{
    for (int a = from; a < v->count; a++) {
        double scaled = factor * v->value[a];
        int32_t row = v->place[a];
        hessian[row * size + row] += scaled * v->value[a];
        for (int b = a + 1; b < v->count; b++) {
            int32_t column = v->place[b];
            double both = scaled * v->value[b];
            if (row < column)
                hessian[row * size + column] += both;
            else if (row > column)
                hessian[column * size + row] += both;
            else
                hessian[row * size + row] += 2 * both;
        }
    }
}

/* The same for places in rising order. */
static void add_sorted_outer(double *hessian, Py_ssize_t size, const Entries *v, double factor)
{
    const int32_t *place = v->place;
    const double *value = v->value;
    int count = v->count;
    for (int a = 0; a < count; a++) {
        double *row = hessian + place[a] * size, scaled = factor * value[a];
        for (int b = a; b < count; b++)
            row[place[b]] += scaled * value[b];
    }
}

/* The derivative of the damage of column j: what the cell shows minus what it reaches. */
static void append_damage(Entries *entries, const Pass *pass, Py_ssize_t j, int32_t left, double weight, double factor)
{
    int32_t slice = pass->reach[left + (pass->shifted[j] && weight > 0)];
    append_entry(entries, left, factor * (1 - weight));
    append_entry(entries, left + 1, factor * weight);
    append_entry(entries, pass->n_points + 1 + slice, -factor);
}

/* Add the curvature of the loss of one row. With psi_q = phi - sum of z_qj v_j, where v_j is the derivative of the
   damage of column j, and the mean m of z weighted by the curvatures w_q,

       sum w_q psi_q psi_q' = W psi_m psi_m' + sum w_q d_q d_q',   d_q = sum of (z_qj - m_j) v_j ,

   where d_q has few entries: only columns that break for some q, and not for all. */
static void add_loss_curvature(Pass *pass, const int32_t *left, const double *weight, const double *curvature,
                               double *moves, Entries *entries)
{
    Py_ssize_t M = pass->n_columns, R = pass->n_radii, size = pass->n_points + pass->n_slices + 2;
    double total = 0.0, *mean = moves + R * M;
    for (Py_ssize_t k = 0; k < R; k++)
        total += curvature[k];
    if (total <= 0)
        return;
    memset(mean, 0, (size_t)M * sizeof(double));
    for (Py_ssize_t k = 0; k < R; k++)
        for (Py_ssize_t j = 0; j < M && curvature[k] > 0; j++)
            mean[j] += curvature[k] / total * moves[k * M + j];
    entries->count = 0;
    for (Py_ssize_t j = 0; j < M; j++) {
        append_entry(entries, left[j], (1 - mean[j]) * (1 - weight[j]));
        append_entry(entries, left[j] + 1, (1 - mean[j]) * weight[j]);
    }
    for (Py_ssize_t j = 0; j < M; j++)
        append_entry(entries, pass->n_points + 1 + pass->reach[left[j] + (pass->shifted[j] && weight[j] > 0)],
                     mean[j]);
    append_entry(entries, size - 1, 1.0);
    int is_sorted = 1;
    for (int a = 1; a < entries->count; a++)
        is_sorted &= entries->place[a - 1] < entries->place[a];
    if (is_sorted)
        add_sorted_outer(pass->hessian, size, entries, total);
    else
        add_outer(pass->hessian, size, entries, 0, total);
    for (Py_ssize_t k = 0; k < R; k++) {
        entries->count = 0;
        for (Py_ssize_t j = 0; j < M && curvature[k] > 0; j++)
            if (moves[k * M + j] != mean[j])
                append_damage(entries, pass, j, left[j], weight[j], moves[k * M + j] - mean[j]);
        add_outer(pass->hessian, size, entries, 0, curvature[k]);
    }
}

/* Add the curvature of the rounded choice of groups of one row for one q. */
static void add_choice_curvature(Pass *pass, const int32_t *left, const double *weight, const double *share,
                                 const double *z, int q, double alpha, Entries *entries)
{
    Py_ssize_t M = pass->n_columns, size = pass->n_points + pass->n_slices + 2;
    int is_single = M == pass->n_groups, n_partial = 0;
    double sum = 0.0;
    if (q == 0)
        return;
    entries->count = 0;
    for (Py_ssize_t g = 0; g < pass->n_groups; g++) {
        sum += z[g];
        if (z[g] <= 1e-9 || z[g] >= 1 - 1e-9)
            continue;
        int from = entries->count;
        n_partial++;
        if (is_single)
            append_damage(entries, pass, g, left[g], weight[g], 1.0);
        else
            for (Py_ssize_t j = 0; j < M; j++)
                if (pass->group[j] == g)
                    append_damage(entries, pass, j, left[j], weight[j], share[j]);
        add_outer(pass->hessian, size, entries, from, alpha / pass->eps);
    }
    if (n_partial && sum > q - 1e-9)
        add_outer(pass->hessian, size, entries, 0, -alpha / (pass->eps * n_partial));
    for (Py_ssize_t j = 0; j < M && !is_single; j++)
        if (share[j] > 0 && share[j] < 1 && z[pass->group[j]] > 0) {
            entries->count = 0;
            append_damage(entries, pass, j, left[j], weight[j], 1.0);
            add_outer(pass->hessian, size, entries, 0, alpha * z[pass->group[j]] / pass->eps);
        }
}

/* Room: n_columns doubles for shares, own and moved; n_groups for damages, z of all groups and of the chosen ones;
   the largest damages (and one more); n_groups places. */
static void run_pass(Pass *pass, double *room, int most, Entries *entries, double *moves)
{
    Py_ssize_t M = pass->n_columns, G = pass->n_groups;
    double *share = room, *moved = share + M, *damage = moved + M, *z = damage + G, *chosen = z + G;
    double *largest = chosen + G;
    int32_t *place = (int32_t *)(largest + most + 1);
    int is_single = M == G, can_be_idle = pass->loss != LOGISTIC;
    double factor = (double)pass->n_rows / (double)((pass->n_rows + pass->step - 1) / pass->step);
    memset(z, 0, (size_t)G * sizeof(double));
    for (Py_ssize_t i = 0; i < pass->n_rows; i += pass->step) {
        const int32_t *left = pass->left + i * M;
        const double *weight = pass->weight + i * M;
        double score = pass->intercept;
        memset(damage, 0, (size_t)G * sizeof(double));
        for (Py_ssize_t j = 0; j < M; j++) {
            const double *point = pass->points + left[j];
            double value = point[0] + weight[j] * (point[1] - point[0]);
            int32_t slice = pass->reach[left[j] + (pass->shifted[j] && weight[j] > 0)];
            double d = fmax(value - pass->low[slice], 0.0);
            score += value;
            share[j] = is_single || pass->eps == 0 ? 1.0 : fmin(d / pass->eps, 1.0);
            damage[pass->group[j]] += is_single ? d : share[j] * (d - pass->eps / 2 * share[j]);
        }
        take_largest(damage, G, most, largest);
        double total_alpha = 0.0;
        double *bends = moves == NULL ? NULL : moves + (pass->n_radii + 1) * M; /* the curvature for each q */
        if (bends != NULL)
            memset(bends, 0, (size_t)pass->n_radii * sizeof(double));
        for (Py_ssize_t k = 0; k < pass->n_radii; k++) {
            int q = pass->radii[k] < most ? pass->radii[k] : most;
            double cost = factor * pass->cost[i] * pass->shares[k];
            double violation = 1 - score, worst = violation, value, slope, conjugate, curvature;
            for (int g = 0; g < q; g++)
                worst += largest[g];
            if (can_be_idle && worst <= 0)
                continue;
            if (pass->eps == 0) {
                evaluate(pass->loss, worst, 0.0, &value, &slope, &conjugate, &curvature);
                pass->totals[0] += cost * value;
                continue;
            }
            Py_ssize_t n_chosen = select_groups(damage, G, q, pass->eps, largest, place, chosen);
            for (Py_ssize_t c = 0; c < n_chosen; c++)
                violation += chosen[c] * (damage[place[c]] - pass->eps / 2 * chosen[c]);
            evaluate(pass->loss, violation, pass->eps, &value, &slope, &conjugate, &curvature);
            double alpha = cost * slope;
            pass->totals[0] += cost * value;
            pass->totals[1] += alpha;
            pass->totals[2] += cost * conjugate;
            if (alpha <= 0)
                continue;
            if (total_alpha == 0.0)
                memset(moved, 0, (size_t)M * sizeof(double));
            total_alpha += alpha;
            if (pass->hessian != NULL) {
                for (Py_ssize_t c = 0; c < n_chosen; c++)
                    z[place[c]] = chosen[c];
                for (Py_ssize_t j = 0; j < M; j++)
                    moves[k * M + j] = z[pass->group[j]] * share[j];
                bends[k] = cost * curvature;
                add_choice_curvature(pass, left, weight, share, z, q, alpha, entries);
                for (Py_ssize_t c = 0; c < n_chosen; c++)
                    z[place[c]] = 0.0;
            }
            if (is_single)
                for (Py_ssize_t c = 0; c < n_chosen; c++)
                    moved[place[c]] += alpha * chosen[c];
            else if (n_chosen) {
                for (Py_ssize_t c = 0; c < n_chosen; c++)
                    z[place[c]] = chosen[c];
                for (Py_ssize_t j = 0; j < M; j++)
                    moved[j] += alpha * z[pass->group[j]] * share[j];
                for (Py_ssize_t c = 0; c < n_chosen; c++)
                    z[place[c]] = 0.0;
            }
        }
        if (total_alpha <= 0)
            continue;
        if (bends != NULL)
            add_loss_curvature(pass, left, weight, bends, moves, entries);
        for (Py_ssize_t j = 0; j < M; j++) {
            double stays = total_alpha - moved[j];
            pass->own[left[j]] += (1 - weight[j]) * stays;
            pass->own[left[j] + 1] += weight[j] * stays;
            if (moved[j] > 0)
                pass->moved[pass->reach[left[j] + (pass->shifted[j] && weight[j] > 0)]] += moved[j];
        }
    }
}

enum { LEFT, WEIGHT, COST, POINTS, REACH, LOW, SHIFTED, GROUP, RADII, SHARES, OWN, MOVED, TOTALS, HESSIAN, N_ARRAYS };

static const char *const NAMES[] = {"left",    "weight", "cost",  "points", "reach", "low",
                                    "shifted", "group",  "radii", "shares", "own", "moved", "totals", "hessian"};

/* Memory beyond the arrays is not ours to touch: lengths agree, and every index is inside. */
static int is_sound(const Pass *pass)
{
    int32_t most_left = 0, most_slice = 0, most_group = 0, least = 0;
    for (Py_ssize_t at = 0; at < pass->n_rows * pass->n_columns; at++) {
        most_left = pass->left[at] > most_left ? pass->left[at] : most_left;
        least = pass->left[at] < least ? pass->left[at] : least;
    }
    for (Py_ssize_t p = 0; p <= pass->n_points; p++) {
        most_slice = pass->reach[p] > most_slice ? pass->reach[p] : most_slice;
        least = pass->reach[p] < least ? pass->reach[p] : least;
    }
    for (Py_ssize_t j = 0; j < pass->n_columns; j++) {
        most_group = pass->group[j] > most_group ? pass->group[j] : most_group;
        least = pass->group[j] < least ? pass->group[j] : least;
    }
    for (Py_ssize_t k = 0; k < pass->n_radii; k++)
        if (pass->radii[k] < 0)
            return 0;
    return least >= 0 && most_left < pass->n_points && most_slice < pass->n_slices && most_group < pass->n_groups;
}

PyObject *additive_pass(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given[N_ARRAYS];
    Pass pass;
    int n_groups;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOOOddiii", &given[LEFT], &given[WEIGHT], &given[COST], &given[POINTS],
                          &given[REACH], &given[LOW], &given[SHIFTED], &given[GROUP], &given[RADII], &given[SHARES],
                          &given[OWN], &given[MOVED], &given[TOTALS], &given[HESSIAN], &pass.intercept, &pass.eps, &pass.loss, &n_groups,
                          &pass.step))
        return NULL;
    Py_buffer arrays[N_ARRAYS];
    memset(arrays, 0, sizeof(arrays));
    PyObject *result = NULL;
    double *room = NULL, *moves = NULL;
    Entries entries = {NULL, NULL, 0};
    for (int at = 0; at < N_ARRAYS; at++) {
        int is_index = at == LEFT || at == REACH || at == SHIFTED || at == GROUP || at == RADII;
        if (!take_array(given[at], NAMES[at], is_index ? "i" : "d", at >= OWN, &arrays[at]))
            goto done;
    }
    pass.left = arrays[LEFT].buf, pass.weight = arrays[WEIGHT].buf, pass.cost = arrays[COST].buf;
    pass.points = arrays[POINTS].buf, pass.reach = arrays[REACH].buf, pass.low = arrays[LOW].buf;
    pass.shifted = arrays[SHIFTED].buf, pass.group = arrays[GROUP].buf, pass.radii = arrays[RADII].buf;
    pass.shares = arrays[SHARES].buf;
    pass.own = arrays[OWN].buf, pass.moved = arrays[MOVED].buf, pass.totals = arrays[TOTALS].buf;
    pass.n_rows = arrays[COST].len / (Py_ssize_t)sizeof(double);
    pass.n_columns = arrays[GROUP].len / (Py_ssize_t)sizeof(int32_t);
    pass.n_points = arrays[POINTS].len / (Py_ssize_t)sizeof(double) - 1;
    pass.n_slices = arrays[LOW].len / (Py_ssize_t)sizeof(double);
    pass.n_radii = arrays[RADII].len / (Py_ssize_t)sizeof(int32_t);
    pass.n_groups = n_groups;
    Py_ssize_t n_cells = pass.n_rows * pass.n_columns;
    if (!has_length(&arrays[LEFT], n_cells, "left") || !has_length(&arrays[WEIGHT], n_cells, "weight") ||
        !has_length(&arrays[REACH], pass.n_points + 1, "reach") ||
        !has_length(&arrays[SHIFTED], pass.n_columns, "shifted") || !has_length(&arrays[SHARES], pass.n_radii, "shares") ||
        !has_length(&arrays[OWN], pass.n_points + 1, "own") ||
        !has_length(&arrays[MOVED], pass.n_slices, "moved") || !has_length(&arrays[TOTALS], 3, "totals"))
        goto done;
    Py_ssize_t size = pass.n_points + pass.n_slices + 2;
    if (arrays[HESSIAN].len > 0 && !has_length(&arrays[HESSIAN], size * size, "hessian"))
        goto done;
    pass.hessian = arrays[HESSIAN].len > 0 ? arrays[HESSIAN].buf : NULL;
    if (pass.n_points < 1 || n_groups < 1 || pass.step < 1 || !(pass.eps >= 0) || pass.loss < SQUARED_HINGE || pass.loss > LOGISTIC ||
        !is_sound(&pass)) {
        PyErr_SetString(PyExc_ValueError, "an index of the rows or of the adversary is out of range.");
        goto done;
    }
    int most = 0;
    for (Py_ssize_t k = 0; k < pass.n_radii; k++)
        most = pass.radii[k] > most ? pass.radii[k] : most;
    most = most < n_groups ? most : n_groups;
    room = PyMem_Malloc((size_t)(2 * pass.n_columns + 4 * n_groups + most + 2) * sizeof(double));
    if (pass.hessian != NULL) {
        entries.place = PyMem_Malloc((size_t)(3 * pass.n_columns + 1) * sizeof(int32_t));
        entries.value = PyMem_Malloc((size_t)(3 * pass.n_columns + 1) * sizeof(double));
        moves = PyMem_Malloc((size_t)((pass.n_radii + 1) * pass.n_columns + pass.n_radii) * sizeof(double));
    }
    if (room == NULL || (pass.hessian != NULL && (entries.place == NULL || entries.value == NULL || moves == NULL))) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS;
    run_pass(&pass, room, most, &entries, moves);
    Py_END_ALLOW_THREADS;
    result = Py_None;
    Py_INCREF(result);
done:
    PyMem_Free(room);
    PyMem_Free(entries.place);
    PyMem_Free(entries.value);
    PyMem_Free(moves);
    release_arrays(arrays, N_ARRAYS);
    return result;
}
