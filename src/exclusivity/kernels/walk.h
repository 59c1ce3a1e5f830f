/* What the parts of a walk share: see planes.c for what it is about. */

#ifndef EXCLUSIVITY_WALK_H
#define EXCLUSIVITY_WALK_H

#include "planes.h"

#define MOST_LEVELS 12

/* The directions of a plane. */
enum { DOWNHILL, LAST, INTERCEPT, N_LINES };

/* Two directions in the features that do not occur in a view: where their gradient g = w - u and the last step l are,
   as sums of where these two were when the view was made, and all products of those with each other and with u. */
typedef struct {
    double gradient[2], last[2];
    double gg, gl, ll, ug, ul, uu;
} Absent;

/* Rows and features as the walk sees them: all of them, or a copy of the rows in play and the features in these. */
typedef struct View {
    Rows rows;
    ptrdiff_t *which; /* where the rows in play are in ``rows`` */
    const double *mean_squares;
    double *weights, *dual_weights, *downhill, *last, *blended_weights, *fixed_weights; /* a number per feature */
    Absent absent;
    RowsCopy copy; /* of a part of the view below */
    struct View *below;
    void *memory;
} View;

/* Rows in play, before some of them were left out. */
typedef struct {
    ptrdiff_t n_rows;
    double leash, drift; /* how far those that stayed may move, and have moved */
    double gap;
    int has_view; /* of its own */
} Level;

/* What a walk does next, once the products that it wants are there. */
typedef enum { ARRIVES, BEGINS, HAS_PULLS, DECIDES, STEPS, LOOKS, LOOKS_CLOSE, LOOKS_STUCK } Stage;

/* shortfalls[i] = -y_i x_i . vector for the rows from first to last. */
typedef struct {
    ptrdiff_t first, last;
    const double *vector;
    double *shortfalls;
} Product;

enum { MOST_WANTED = 2 };

struct Walk {
    ptrdiff_t n_rows, n_in_play;
    ptrdiff_t n_with_last; /* rows in play whose shortfalls along the last step are known */
    double n_numbers;
    Task task;
    Poll poll;
    void *context;
    View *view;
    /* a number per row, those in play first; slopes and dual vectors are over the costs */
    double *labels, *costs, *shortfall, *slopes, *centre, *blended, *last_shortfall, *along, *spare;
    double intercept, width, objective, bound, blended_bound;
    double slope_sum, curvature, excess; /* sum c a, sum c a'(s), |gradient|^2 / 2 */
    double gram[N_LINES][N_LINES]; /* products of the directions */
    double along_weights[N_LINES]; /* and of these with the weights less the pull of rows left out at the top */
    double due[2]; /* of the directions downhill and last: the step that the weights have yet to take, if it is due */
    int is_due;
    double fixed_sum, fixed_imbalance, fixed_conjugate; /* of rows left out at the top: c a, y c a, k c a^2 / 2 */
    double goal, reach, change, last_change; /* of shortfalls: root mean squares */
    int has_last, has_blend, is_wide, is_interrupted;
    int seems_close; /* and has said so */
    int n_levels;
    Level levels[MOST_LEVELS];
    ptrdiff_t looked_from; /* rows in play before those left out came back */
    double looked_drift; /* how far rows in play had moved then */
    double mobility; /* how many times as far rows left out have moved, at most */
    double first_width;
    Stage stage;
    int n_wanted, wants_pulls; /* products with most rows, and the first pulls of all of them */
    Product wanted[MOST_WANTED];
    int n_steps, n_steps_left;
    double gap_before; /* some steps ago */
    double n_read, n_since_poll;
    void *memory;
};

static inline double clipped(double a, double top)
{
    a = a > 0 ? a : 0;
    return a < top ? a : top;
}

/* planes.c: on, until products are wanted or the walk ends. */
Ending walk_on(Walk *k);

/* place.c: where the walk is. */

/* The relative gap, about. */
double gap(const Walk *k);
/* The intercept at its best, slopes, gradient, objective and bound at the shortfalls of the rows in play. */
void evaluate(Walk *k);
/* The same in two parts: before and after the pulls of the rows are added to the dual weights. */
void begin_evaluation(Walk *k);
void end_evaluation(Walk *k);
/* The directions of the next plane, where features or what is fixed have become others. */
void take_directions(Walk *k);
/* Blend the slopes here with those that come. */
void forget_blend(Walk *k);
/* The loss comes closer to the true one, around the slopes. */
void sharpen(Walk *k);

/* step.c: where next. */

/* Products along the directions of the plane are wanted. */
void begin_step(Walk *k);
/* To the best point of the plane; 0 where it is the point itself. */
int end_step(Walk *k);

/* view.c: rows and features. */

View *view_new(const Rows *rows, const double *mean_squares);
void view_free(View *view);
/* Ctrl-C is heard after some numbers and before the next; after that nothing counts any more. */
void hear(Walk *k, double n_numbers);
/* So many rows are read between two questions for it. */
ptrdiff_t rows_at_a_time(const Walk *k);
/* A product is made at once if it is one with few rows; otherwise it is wanted: other walks may want one, too. */
void want(Walk *k, Product product);
/* A product for this walk alone. */
void make_product(Walk *k, Product product);
/* So many numbers of the rows were read for this walk. */
void note_read(Walk *k, ptrdiff_t n_read);
/* spare[i] = sign y_i c_i a_i for the rows from first to last. */
void take_factors(Walk *k, ptrdiff_t first, ptrdiff_t last, double sign);
/* sum += sign sum_i y_i c_i a_i x_i over the rows from first to last. */
void add_pulls(Walk *k, ptrdiff_t first, ptrdiff_t last, double sign, double *sum);
/* On with a copy of the rows in play; 0 where that is not worth it. */
int copy_view(Walk *k);
/* Before the first step: on with a copy of all rows whose features are sorted, where that is worth it. */
void sort_view(Walk *k);
/* Back to the view below, where all rows in play are those of this one; its directions are to be taken then. */
void drop_view(Walk *k);
/* The same products, of gradient and last step as they are now. */
Absent absent_now(const View *view);
/* A step of so many gradients downhill and so many last steps. */
void absent_step(View *view, double t_down, double t_last);
/* The weights of all features. */
void write_weights(const Walk *k, double *weights);
/* Which of all rows the one at i is. */
ptrdiff_t original_row(const Walk *k, ptrdiff_t i);

/* levels.c: rows in play. */

/* Leave out rows whose slope stays at 0 or at the top, unless few of them are. */
void leave_out(Walk *k);
/* Back to all rows, or to those of a level that still holds; where those left out are is wanted then. */
void begin_look(Walk *k, int all);
/* 1 where any had been left out by mistake. */
int end_look(Walk *k);

#endif
