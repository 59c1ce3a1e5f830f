/* What Python calls: arrays are checked here, and nowhere behind. */

#include "arrays.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "subspace.h"

static const char CAPSULE[] = "exclusivity.kernels.Solver";

enum { MOST_STEPS = 1000000 }; /* at a time: far more than anybody waits for */

enum { NUMBERS, COLUMNS, STARTS, MEAN_SQUARES, N_KEPT };

typedef struct {
    Solver *solver;
    Py_buffer kept[N_KEPT]; /* arrays that the solver reads as long as it lives */
    Py_ssize_t n_rows, n_features;
    PyThreadState *thread; /* while others may run */
    PyObject *is_cancelled; /* called where signals are polled: they reach the main thread only (NULL: none) */
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
    static int NAME(const Csr *rows, Py_ssize_t n_numbers)                                                      \
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
static int make_rows(const Py_buffer arrays[], Py_ssize_t n_rows, Py_ssize_t n_features, Csr *rows)
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
    *rows = (Csr){n_rows, n_features, numbers->buf, columns->buf, starts->buf, numbers->itemsize == 4,
                   columns->itemsize == 8};
    if (n_features > (rows->has_long_indices ? PTRDIFF_MAX : INT32_MAX) ||
        !(rows->has_long_indices ? are_sound_long : are_sound)(rows, n_numbers)) {
        PyErr_SetString(PyExc_ValueError, "starts must not fall, and columns must be from 0 to n_features - 1.");
        return 0;
    }
    return 1;
}

/* ---- a solver ---- */

static void release(Held *held)
{
    solver_free(held->solver);
    release_arrays(held->kept, N_KEPT);
    PyMem_Free(held);
}

static void release_capsule(PyObject *capsule)
{
    release(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* Signals are polled in between; other threads run while the solver does. */
static int poll_signals(void *context)
{
    Held *held = context;
    PyEval_RestoreThread(held->thread);
    int is_interrupted = PyErr_CheckSignals() != 0;
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
    Csr rows;
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
    held->solver = solver_new(&rows, task, copied[LABELS].buf, copied[COSTS].buf, copied[WEIGHTS].buf,
                              copied[CENTRE].buf, squares->obj == NULL ? NULL : squares->buf, intercept, width,
                              poll_signals, held);
    PyEval_RestoreThread(held->thread);
    if (PyErr_Occurred() != NULL)
        return NULL;
    return held->solver == NULL ? PyErr_NoMemory() : PyCapsule_New(held, CAPSULE, release_capsule);
}

static PyObject *new_solver(PyObject *module, PyObject *arguments)
{
    static const char *const names[] = {"labels", "costs", "weights", "centre"};
    PyObject *kept[N_KEPT], *sources[N_COPIED], *solver = NULL;
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
        solver = start_held(held, task, intercept, width, copied);
    release_arrays(copied, N_COPIED);
    if (solver == NULL)
        release(held);
    return solver;
}

static Held *get_held(PyObject *capsule)
{
    Held *held = PyCapsule_GetPointer(capsule, CAPSULE);
    if (held != NULL && held->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "the solver is running in another thread.");
        return NULL;
    }
    return held;
}

static PyObject *advance(PyObject *module, PyObject *arguments)
{
    PyObject *capsule, *is_cancelled = NULL;
    Held *held;
    double goal;
    int most_steps;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Odi|O", &capsule, &goal, &most_steps, &is_cancelled) ||
        (held = get_held(capsule)) == NULL)
        return NULL;
    if (solver_is_interrupted(held->solver)) {
        PyErr_SetString(PyExc_RuntimeError, "the solver was interrupted.");
        return NULL;
    }
    if (most_steps > MOST_STEPS) {
        PyErr_Format(PyExc_ValueError, "at most %d steps at a time; got %d.", MOST_STEPS, most_steps);
        return NULL;
    }
    held->is_busy = 1; /* before any other thread can ask for it */
    held->is_cancelled = is_cancelled;
    held->thread = PyEval_SaveThread();
    Ending ending = solver_advance(held->solver, goal, most_steps);
    PyEval_RestoreThread(held->thread);
    held->is_busy = 0;
    held->is_cancelled = NULL;
    if (PyErr_Occurred() != NULL)
        return NULL;
    Iterate at = solver_iterate(held->solver);
    return Py_BuildValue("idddddd", (int)ending, at.intercept, at.width, at.objective, at.bound, at.gradient_norm,
                         at.passes);
}

static PyObject *write_iterate(PyObject *module, PyObject *arguments)
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
        solver_write(held->solver, views[0].buf, views[1].buf, views[2].buf);
    release_arrays(views, 3);
    if (!is_sound)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- rows alone ---- */

enum { LARGEST, ROW_SQUARES, FEATURE_SQUARES, N_SUMMARIES };

static PyObject *summarise_rows(PyObject *module, PyObject *arguments)
{
    static const char *const names[] = {"largest", "row_squares", "feature_squares"};
    PyObject *sources[N_KEPT], *targets[N_SUMMARIES];
    Py_buffer arrays[N_KEPT] = {0}, written[N_SUMMARIES] = {0};
    Csr rows;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOOOO", &sources[NUMBERS], &sources[COLUMNS], &sources[STARTS],
                          &targets[LARGEST], &targets[ROW_SQUARES], &targets[FEATURE_SQUARES]))
        return NULL;
    int is_sound = take_rows(sources, arrays);
    for (int i = 0; is_sound && i < N_SUMMARIES; i++)
        is_sound = take_array(targets[i], names[i], "d", 1, &written[i]);
    if (is_sound) {
        Py_ssize_t n_features = written[LARGEST].len / written[LARGEST].itemsize;
        is_sound = has_length(&written[FEATURE_SQUARES], n_features, "feature_squares") &&
                   make_rows(arrays, written[ROW_SQUARES].len / written[ROW_SQUARES].itemsize, n_features, &rows);
    }
    if (is_sound) {
        PyThreadState *thread = PyEval_SaveThread();
        csr_summarise(&rows, written[LARGEST].buf, written[ROW_SQUARES].buf, written[FEATURE_SQUARES].buf);
        PyEval_RestoreThread(thread);
    }
    release_arrays(arrays, N_KEPT);
    release_arrays(written, N_SUMMARIES);
    if (!is_sound)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"new_solver", new_solver, METH_VARARGS, "Return a subspace solver over CSR rows that starts at these weights."},
    {"advance", advance, METH_VARARGS, "Advance it to about this gap, for at most so many steps."},
    {"write_iterate", write_iterate, METH_VARARGS, "Write weights, slopes and the best dual vector into arrays."},
    {"summarise_rows", summarise_rows, METH_VARARGS, "Write largest numbers and sums of squares of CSR rows into arrays."},
    {"additive_pass", additive_pass, METH_VARARGS, "Sums over rows of the robust additive model, into arrays."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_compiled",
    .m_doc = "The subspace method over sparse rows, and passes of the robust additive model.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddIntConstant(module, "CONVERGED", CONVERGED) ||
                           PyModule_AddIntConstant(module, "SEEMS_CONVERGED", SEEMS_CONVERGED) ||
                           PyModule_AddIntConstant(module, "STALLED", STALLED) ||
                           PyModule_AddIntConstant(module, "STEP_LIMIT", STEP_LIMIT))) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
