/* The door from Python to the compiled walk: arrays are checked here, and nowhere behind. */

#include "arrays.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "planes.h"

static const char CAPSULE[] = "exclusivity.kernels.Walk";

enum { MOST_STEPS = 1000000 }; /* at a time: far more than anybody waits for */

enum { NUMBERS, COLUMNS, STARTS, MEAN_SQUARES, N_KEPT };

typedef struct {
    Walk *walk;
    Py_buffer kept[N_KEPT]; /* arrays that the walk reads as long as it lives */
    Py_ssize_t n_rows, n_features;
    PyThreadState *thread; /* while others may run */
    PyObject *is_cancelled; /* asked where signals are heard: other threads hear none (NULL: nobody to ask) */
    int is_busy;
} Held;

/* ---- arrays ---- */

int take_array(PyObject *array, const char *name, const char *kinds, int is_written, Py_buffer *view)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, view, flags) != 0)
        return 0;
    const char *kind = view->format == NULL ? "B" : view->format;
    if (view->ndim != 1 || kind[0] == '\0' || kind[1] != '\0' || strchr(kinds, kind[0]) == NULL) {
        PyErr_Format(PyExc_TypeError, "%s must be a vector of numbers of kind %s; got %d dimensions of %s.", name,
                     kinds, view->ndim, kind);
        PyBuffer_Release(view);
        view->obj = NULL;
        return 0;
    }
    return 1;
}

/* The three arrays of CSR rows. */
static int take_rows(PyObject *const sources[], Py_buffer arrays[])
{
    return take_array(sources[NUMBERS], "numbers", "df", 0, &arrays[NUMBERS]) &&
           take_array(sources[COLUMNS], "columns", "ilq", 0, &arrays[COLUMNS]) &&
           take_array(sources[STARTS], "starts", "ilq", 0, &arrays[STARTS]);
}

void release_arrays(Py_buffer arrays[], int n)
{
    for (int i = 0; i < n; i++)
        if (arrays[i].obj != NULL)
            PyBuffer_Release(&arrays[i]);
}

int has_length(const Py_buffer *view, Py_ssize_t length, const char *name)
{
    if (view->len / view->itemsize == length)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must have %zd numbers; got %zd.", name, length, view->len / view->itemsize);
    return 0;
}

/* Whether rows start where the last one ended, and all columns are features: memory beyond is not ours to touch. */
#define ARE_SOUND(NAME, INDEX, UNSIGNED)                                                                         \
    static int NAME(const Rows *rows, Py_ssize_t n_numbers)                                                      \
    {                                                                                                            \
        const INDEX *starts = rows->starts, *columns = rows->columns;                                            \
        int is_wrong = starts[0] != 0 || starts[rows->n_rows] != n_numbers;                                      \
        for (ptrdiff_t i = 0; i < rows->n_rows; i++)                                                             \
            is_wrong |= starts[i] > starts[i + 1];                                                               \
        for (Py_ssize_t at = 0; at < n_numbers; at++)                                                            \
            is_wrong |= (UNSIGNED)columns[at] >= (UNSIGNED)rows->n_features;                                     \
        return !is_wrong;                                                                                        \
    }
ARE_SOUND(are_sound, int32_t, uint32_t)
ARE_SOUND(are_sound_long, int64_t, uint64_t)

/* CSR rows out of their three arrays. */
static int make_rows(const Py_buffer arrays[], Py_ssize_t n_rows, Py_ssize_t n_features, Rows *rows)
{
    const Py_buffer *numbers = &arrays[NUMBERS], *columns = &arrays[COLUMNS], *starts = &arrays[STARTS];
    Py_ssize_t n_numbers = numbers->len / numbers->itemsize;
    if (n_rows == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no rows.");
        return 0;
    }
    if (columns->itemsize != starts->itemsize || (columns->itemsize != 4 && columns->itemsize != 8)) {
        PyErr_SetString(PyExc_TypeError, "columns and starts must both have 32 bits, or 64.");
        return 0;
    }
    if (!has_length(columns, n_numbers, "columns") || !has_length(starts, n_rows + 1, "starts"))
        return 0;
    *rows = (Rows){n_rows, n_features, numbers->buf, columns->buf, starts->buf, numbers->itemsize == 4,
                   columns->itemsize == 8};
    if (n_features > (rows->has_long_indices ? PTRDIFF_MAX : INT32_MAX) ||
        !(rows->has_long_indices ? are_sound_long : are_sound)(rows, n_numbers)) {
        PyErr_SetString(PyExc_ValueError, "starts must not fall, and columns must be from 0 to n_features - 1.");
        return 0;
    }
    return 1;
}

/* ---- a walk and its end ---- */

static void release(Held *held)
{
    walk_free(held->walk);
    release_arrays(held->kept, N_KEPT);
    PyMem_Free(held);
}

static void release_capsule(PyObject *capsule)
{
    release(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* Signals are heard in between; other threads run while the walk goes on. */
static int hear_signals(void *context)
{
    Held *held = context;
    PyEval_RestoreThread(held->thread);
    int is_interrupted = PyErr_Occurred() != NULL || PyErr_CheckSignals(); /* another walk may have heard it first */
    if (!is_interrupted && held->is_cancelled != NULL) {
        PyObject *answer = PyObject_CallNoArgs(held->is_cancelled);
        is_interrupted = answer == NULL || PyObject_IsTrue(answer);
        Py_XDECREF(answer);
    }
    held->thread = PyEval_SaveThread();
    return is_interrupted;
}

enum { LABELS, COSTS, WEIGHTS, CENTRE, N_COPIED };

static PyObject *start_held(Held *held, Task task, double intercept, double width, const Py_buffer *copied)
{
    Rows rows;
    held->n_rows = copied[LABELS].len / copied[LABELS].itemsize;
    held->n_features = copied[WEIGHTS].len / copied[WEIGHTS].itemsize;
    if (!has_length(&copied[COSTS], held->n_rows, "costs") || !has_length(&copied[CENTRE], held->n_rows, "centre"))
        return NULL;
    const Py_buffer *squares = &held->kept[MEAN_SQUARES];
    if (squares->obj != NULL && !has_length(squares, held->n_features, "mean_squares"))
        return NULL;
    if (!(task.stiffness + width > 0)) {
        PyErr_SetString(PyExc_ValueError, "a loss with a corner needs a width.");
        return NULL;
    }
    if (!make_rows(held->kept, held->n_rows, held->n_features, &rows))
        return NULL;
    held->thread = PyEval_SaveThread();
    held->walk = walk_new(&rows, task, copied[LABELS].buf, copied[COSTS].buf, copied[WEIGHTS].buf,
                          copied[CENTRE].buf, squares->obj == NULL ? NULL : squares->buf, intercept, width,
                          hear_signals, held);
    PyEval_RestoreThread(held->thread);
    if (PyErr_Occurred() != NULL)
        return NULL;
    return held->walk == NULL ? PyErr_NoMemory() : PyCapsule_New(held, CAPSULE, release_capsule);
}

static PyObject *start_walk(PyObject *module, PyObject *arguments)
{
    static const char *const names[] = {"labels", "costs", "weights", "centre"};
    PyObject *kept[N_KEPT], *sources[N_COPIED], *walk = NULL;
    double intercept, width;
    Task task;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOddddp", &kept[NUMBERS], &kept[COLUMNS], &kept[STARTS],
                          &sources[LABELS], &sources[COSTS], &sources[WEIGHTS], &sources[CENTRE],
                          &kept[MEAN_SQUARES], &intercept, &task.stiffness, &task.top, &width, &task.has_intercept))
        return NULL;
    Held *held = PyMem_Calloc(1, sizeof *held);
    if (held == NULL)
        return PyErr_NoMemory();
    int is_sound = take_rows(kept, held->kept);
    if (is_sound && kept[MEAN_SQUARES] != Py_None)
        is_sound = take_array(kept[MEAN_SQUARES], "mean_squares", "d", 0, &held->kept[MEAN_SQUARES]);
    Py_buffer copied[N_COPIED] = {0};
    for (int i = 0; is_sound && i < N_COPIED; i++)
        is_sound = take_array(sources[i], names[i], "d", 0, &copied[i]);
    if (is_sound)
        walk = start_held(held, task, intercept, width, copied);
    release_arrays(copied, N_COPIED);
    if (walk == NULL)
        release(held);
    return walk;
}

static Held *get_held(PyObject *capsule)
{
    Held *held = PyCapsule_GetPointer(capsule, CAPSULE);
    if (held != NULL && held->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "the walk is on in another thread.");
        return NULL;
    }
    return held;
}

static int have_same_rows(const Held *one, const Held *other)
{
    int is_same = one->n_rows == other->n_rows && one->n_features == other->n_features;
    for (int array = 0; array <= STARTS; array++) {
        const Py_buffer *a = &one->kept[array], *b = &other->kept[array];
        is_same &= a->buf == b->buf && a->len == b->len && a->itemsize == b->itemsize;
    }
    return is_same;
}

/* The walks of a tuple, up to MOST_WALKS; how many they are, 0 with an error set. */
static int get_walks(PyObject *tuple, Held **held)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0; /* a list may change while others run */
    if (n < 1 || n > MOST_WALKS) {
        PyErr_Format(PyExc_ValueError, "walks must be a tuple of 1 to %d walks.", MOST_WALKS);
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if ((held[i] = get_held(PyTuple_GetItem(tuple, i))) == NULL)
            return 0;
        for (Py_ssize_t before = 0; before < i; before++) {
            if (held[before] == held[i]) {
                PyErr_SetString(PyExc_ValueError, "a walk is there twice.");
                return 0;
            }
        }
        if (!have_same_rows(held[i], held[0])) {
            PyErr_SetString(PyExc_ValueError, "the walks must be over the same rows.");
            return 0;
        }
        if (walk_is_interrupted(held[i]->walk)) {
            PyErr_SetString(PyExc_RuntimeError, "the walk was interrupted.");
            return 0;
        }
    }
    return (int)n;
}

/* The goals of up to MOST_WALKS walks; how many they are, 0 with an error set. */
static int get_goals(PyObject *tuple, double *goals)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    if (n < 1 || n > MOST_WALKS) {
        PyErr_SetString(PyExc_ValueError, "goals must be a tuple of a number for every walk.");
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        goals[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred() != NULL)
            return 0;
    }
    return (int)n;
}

static void walk_together(Held *const *held, int n, const double *goals, int most_steps, PyObject *is_cancelled,
                          Ending *endings)
{
    Walk *walks[MOST_WALKS];
    for (int i = 0; i < n; i++) { /* before any other thread can ask for them */
        walks[i] = held[i]->walk;
        held[i]->is_busy = 1;
        held[i]->is_cancelled = is_cancelled;
    }
    PyThreadState *thread = PyEval_SaveThread();
    for (int i = 0; i < n; i++)
        held[i]->thread = thread;
    walks_on(walks, n, goals, most_steps, endings);
    PyEval_RestoreThread(thread);
    for (int i = 0; i < n; i++) {
        held[i]->is_busy = 0;
        held[i]->is_cancelled = NULL;
    }
}

static PyObject *go_on(PyObject *module, PyObject *arguments)
{
    PyObject *walks, *wanted, *places, *is_cancelled = NULL;
    Held *held[MOST_WALKS];
    double goals[MOST_WALKS];
    Ending endings[MOST_WALKS];
    int most_steps, n, n_goals;
    (void)module;
    /* The goals first: asking an object for its number may let other threads run. */
    if (!PyArg_ParseTuple(arguments, "OOi|O", &walks, &wanted, &most_steps, &is_cancelled) ||
        (n_goals = get_goals(wanted, goals)) == 0 || (n = get_walks(walks, held)) == 0)
        return NULL;
    if (n != n_goals) {
        PyErr_Format(PyExc_ValueError, "there are %d walks and %d goals.", n, n_goals);
        return NULL;
    }
    if (most_steps > MOST_STEPS) {
        PyErr_Format(PyExc_ValueError, "at most %d steps at a time; got %d.", MOST_STEPS, most_steps);
        return NULL;
    }
    walk_together(held, n, goals, most_steps, is_cancelled, endings);
    if (PyErr_Occurred() != NULL || (places = PyList_New(n)) == NULL)
        return NULL;
    for (int i = 0; i < n; i++) {
        Place place = walk_place(held[i]->walk);
        PyObject *item = Py_BuildValue("idddddd", (int)endings[i], place.intercept, place.width, place.objective,
                                       place.bound, place.gradient_norm, place.passes);
        if (item == NULL || PyList_SetItem(places, i, item) != 0) {
            Py_DECREF(places);
            return NULL;
        }
    }
    return places;
}

static PyObject *write_walk(PyObject *module, PyObject *arguments)
{
    static const char *const names[] = {"weights", "slopes", "dual"};
    PyObject *capsule, *arrays[3];
    Py_buffer views[3] = {0};
    Held *held;
    int is_sound = 1;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOO", &capsule, &arrays[0], &arrays[1], &arrays[2]) ||
        (held = get_held(capsule)) == NULL)
        return NULL;
    for (int i = 0; is_sound && i < 3; i++)
        is_sound = take_array(arrays[i], names[i], "d", 1, &views[i]) &&
                   has_length(&views[i], i == 0 ? held->n_features : held->n_rows, names[i]);
    if (is_sound)
        walk_write(held->walk, views[0].buf, views[1].buf, views[2].buf);
    release_arrays(views, 3);
    if (!is_sound)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- rows alone ---- */

enum { LARGEST, ROW_SQUARES, FEATURE_SQUARES, N_SURVEYED };

static PyObject *survey_rows(PyObject *module, PyObject *arguments)
{
    static const char *const names[] = {"largest", "row_squares", "feature_squares"};
    PyObject *sources[N_KEPT], *targets[N_SURVEYED];
    Py_buffer arrays[N_KEPT] = {0}, written[N_SURVEYED] = {0};
    Rows rows;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOOOO", &sources[NUMBERS], &sources[COLUMNS], &sources[STARTS],
                          &targets[LARGEST], &targets[ROW_SQUARES], &targets[FEATURE_SQUARES]))
        return NULL;
    int is_sound = take_rows(sources, arrays);
    for (int i = 0; is_sound && i < N_SURVEYED; i++)
        is_sound = take_array(targets[i], names[i], "d", 1, &written[i]);
    if (is_sound) {
        Py_ssize_t n_features = written[LARGEST].len / written[LARGEST].itemsize;
        is_sound = has_length(&written[FEATURE_SQUARES], n_features, "feature_squares") &&
                   make_rows(arrays, written[ROW_SQUARES].len / written[ROW_SQUARES].itemsize, n_features, &rows);
    }
    if (is_sound) {
        PyThreadState *thread = PyEval_SaveThread();
        rows_survey(&rows, written[LARGEST].buf, written[ROW_SQUARES].buf, written[FEATURE_SQUARES].buf);
        PyEval_RestoreThread(thread);
    }
    release_arrays(arrays, N_KEPT);
    release_arrays(written, N_SURVEYED);
    if (!is_sound)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start_walk", start_walk, METH_VARARGS, "A walk over CSR rows that starts at these weights."},
    {"go_on", go_on, METH_VARARGS, "On until the gaps are about so small, for at most so many steps each."},
    {"write_walk", write_walk, METH_VARARGS, "Write weights, slopes and the best dual vector into arrays."},
    {"survey_rows", survey_rows, METH_VARARGS, "Largest numbers and sums of squares of CSR rows, into arrays."},
    {"additive_pass", additive_pass, METH_VARARGS, "Sums over rows of the robust additive model, into arrays."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_compiled",
    .m_doc = "Steps in planes over sparse rows.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL &&
        (PyModule_AddIntConstant(module, "IS_CLOSE", IS_CLOSE) ||
         PyModule_AddIntConstant(module, "SEEMS_CLOSE", SEEMS_CLOSE) ||
         PyModule_AddIntConstant(module, "IS_SLOW", IS_SLOW) ||
         PyModule_AddIntConstant(module, "IS_ON_ITS_WAY", IS_ON_ITS_WAY) ||
         PyModule_AddIntConstant(module, "MOST_WALKS", MOST_WALKS))) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
