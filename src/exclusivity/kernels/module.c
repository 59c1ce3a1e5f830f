/* What Python calls: arrays are checked here, and nowhere behind. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one build for Python 3.11 and all that follow */
#include <Python.h>

#include <limits.h>
#include <string.h>

#include "kernels.h"

/* ---- arguments ---- */

/* A contiguous vector of numbers: of one kind ("d"), or of several ("df"). */
typedef struct {
    const char *name, *kinds;
    int is_written, is_optional;
    Py_buffer view;
    Py_ssize_t length;
} Vector;

/* For "O&" in the formats of arguments. */
static int take_vector(PyObject *array, void *target)
{
    Vector *vector = target;
    if (vector->is_optional && array == Py_None)
        return 1;
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (vector->is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, &vector->view, flags) != 0)
        return 0;
    const char *kind = vector->view.format == NULL ? "B" : vector->view.format;
    if (vector->view.ndim != 1 || strlen(kind) != 1 || strchr(vector->kinds, kind[0]) == NULL) {
        PyErr_Format(PyExc_TypeError, "%s must be a vector of numbers of kind %s; got %d dimensions of %s.",
                     vector->name, vector->kinds, vector->view.ndim, kind);
        return 0;
    }
    vector->length = vector->view.len / vector->view.itemsize;
    return 1;
}

#define INTO(VECTOR) take_vector, &(VECTOR)

static void release_vectors(Vector vectors[], int n)
{
    for (int i = 0; i < n; i++)
        if (vectors[i].view.obj != NULL)
            PyBuffer_Release(&vectors[i].view);
}

static int has_length(const Vector *vector, Py_ssize_t length)
{
    if (vector->length == length)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must have %zd numbers; got %zd.", vector->name, length, vector->length);
    return 0;
}

enum { NUMBERS, COLUMNS, STARTS, N_OF_ROWS, MEAN_SQUARES = N_OF_ROWS, N_KEPT };

#define ROW_VECTORS {"numbers", "df"}, {"columns", "ilq"}, {"starts", "ilq"}

/* CSR rows out of their three vectors. */
static int make_rows(const Vector vectors[], Py_ssize_t n_rows, Py_ssize_t n_features, Csr *rows)
{
    const Vector *numbers = &vectors[NUMBERS], *columns = &vectors[COLUMNS], *starts = &vectors[STARTS];
    Py_ssize_t size = columns->view.itemsize;
    if (n_rows == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no rows.");
        return 0;
    }
    if (size != starts->view.itemsize || (size != 4 && size != 8)) {
        PyErr_SetString(PyExc_TypeError, "columns and starts must both have 32 bits, or 64.");
        return 0;
    }
    if (!has_length(columns, numbers->length) || !has_length(starts, n_rows + 1))
        return 0;
    *rows = (Csr){n_rows, n_features, numbers->length, numbers->view.buf, columns->view.buf, starts->view.buf,
                  numbers->view.itemsize == 4, size == 8};
    if ((size == 4 && n_features > INT32_MAX) || !csr_is_sound(rows)) {
        PyErr_SetString(PyExc_ValueError, "starts must not fall, and columns must be from 0 to n_features - 1.");
        return 0;
    }
    return 1;
}

static PyObject *summarise_rows(PyObject *module, PyObject *arguments)
{
    enum { LARGEST = N_OF_ROWS, ROW_SQUARES, FEATURE_SQUARES, N_VECTORS };
    Vector v[N_VECTORS] = {
        ROW_VECTORS,
        {"largest", "d", 1}, {"row_squares", "d", 1}, {"feature_squares", "d", 1},
    };
    Csr rows;
    (void)module;
    int is_sound = PyArg_ParseTuple(arguments, "O&O&O&O&O&O&", INTO(v[NUMBERS]), INTO(v[COLUMNS]), INTO(v[STARTS]),
                                    INTO(v[LARGEST]), INTO(v[ROW_SQUARES]), INTO(v[FEATURE_SQUARES])) &&
                   has_length(&v[FEATURE_SQUARES], v[LARGEST].length) &&
                   make_rows(v, v[ROW_SQUARES].length, v[LARGEST].length, &rows);
    if (is_sound) {
        Py_BEGIN_ALLOW_THREADS;
        csr_summarise(&rows, v[LARGEST].view.buf, v[ROW_SQUARES].view.buf, v[FEATURE_SQUARES].view.buf);
        Py_END_ALLOW_THREADS;
    }
    release_vectors(v, N_VECTORS);
    return is_sound ? Py_NewRef(Py_None) : NULL;
}

/* ---- a subspace solver ---- */

static const char CAPSULE[] = "exclusivity.kernels.Solver";

enum { MOST_STEPS = 1000000 }; /* at a time: far more than any call needs */

typedef struct {
    Solver *solver;
    Vector kept[N_KEPT]; /* which the solver reads as long as it lives */
    Py_ssize_t n_rows, n_features;
    PyThreadState *thread; /* while others may run */
    PyObject *is_cancelled; /* called where signals are polled: they reach the main thread only (NULL: none) */
    int is_busy;
} Held;

static void release(Held *held)
{
    solver_free(held->solver);
    release_vectors(held->kept, N_KEPT);
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

static PyObject *new_solver(PyObject *module, PyObject *arguments)
{
    enum { LABELS, COSTS, WEIGHTS, CENTRE, N_COPIED };
    const Vector kept[N_KEPT] = {ROW_VECTORS, {"mean_squares", "d", 0, 1}};
    Vector v[N_COPIED] = {{"labels", "d"}, {"costs", "d"}, {"weights", "d"}, {"centre", "d"}};
    double intercept, width;
    Task task;
    Csr rows;
    (void)module;
    Held *held = PyMem_Calloc(1, sizeof *held);
    if (held == NULL)
        return PyErr_NoMemory();
    memcpy(held->kept, kept, sizeof kept);
    Vector *k = held->kept;
    if (!PyArg_ParseTuple(arguments, "O&O&O&O&O&O&O&O&ddddp", INTO(k[NUMBERS]), INTO(k[COLUMNS]), INTO(k[STARTS]),
                          INTO(v[LABELS]), INTO(v[COSTS]), INTO(v[WEIGHTS]), INTO(v[CENTRE]), INTO(k[MEAN_SQUARES]),
                          &intercept, &task.stiffness, &task.top, &width, &task.has_intercept))
        goto done;
    held->n_rows = v[LABELS].length;
    held->n_features = v[WEIGHTS].length;
    if (!has_length(&v[COSTS], held->n_rows) || !has_length(&v[CENTRE], held->n_rows) ||
        (k[MEAN_SQUARES].view.obj != NULL && !has_length(&k[MEAN_SQUARES], held->n_features)))
        goto done;
    if (!(task.stiffness + width > 0)) {
        PyErr_SetString(PyExc_ValueError, "a loss with a corner needs a width.");
        goto done;
    }
    if (!make_rows(k, held->n_rows, held->n_features, &rows))
        goto done;
    held->solver = solver_new(&rows, task, v[LABELS].view.buf, v[COSTS].view.buf, v[WEIGHTS].view.buf,
                              v[CENTRE].view.buf, k[MEAN_SQUARES].view.buf, intercept, width, poll_signals, held);
    if (held->solver == NULL)
        PyErr_NoMemory();
done:
    release_vectors(v, N_COPIED);
    PyObject *capsule = held->solver == NULL ? NULL : PyCapsule_New(held, CAPSULE, release_capsule);
    if (capsule == NULL)
        release(held);
    return capsule;
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
    Vector v[] = {{"weights", "d", 1}, {"slopes", "d", 1}, {"dual", "d", 1}};
    PyObject *capsule;
    Held *held;
    (void)module;
    int is_sound = PyArg_ParseTuple(arguments, "OO&O&O&", &capsule, INTO(v[0]), INTO(v[1]), INTO(v[2])) &&
                   (held = get_held(capsule)) != NULL && has_length(&v[0], held->n_features) &&
                   has_length(&v[1], held->n_rows) && has_length(&v[2], held->n_rows);
    if (is_sound)
        solver_write(held->solver, v[0].view.buf, v[1].view.buf, v[2].view.buf);
    release_vectors(v, 3);
    return is_sound ? Py_NewRef(Py_None) : NULL;
}

/* ---- the robust additive model ---- */

/* Memory beyond the arrays is not ours to touch: every index is inside. */
static int are_below(const Vector *indices, Py_ssize_t end)
{
    const int32_t *values = indices->view.buf;
    int is_wrong = 0;
    for (Py_ssize_t at = 0; at < indices->length; at++)
        is_wrong |= values[at] < 0 || values[at] >= end;
    return !is_wrong;
}

static PyObject *additive_pass(PyObject *module, PyObject *arguments)
{
    enum { LEFT, WEIGHT, COST, POINTS, REACH, LOW, SHIFTED, GROUP, RADII, SHARES, OWN, MOVED, TOTALS, HESSIAN };
    enum { N_VECTORS = HESSIAN + 1 };
    Vector v[N_VECTORS] = {
        {"left", "i"},   {"weight", "d"}, {"cost", "d"},    {"points", "d"}, {"reach", "i"},
        {"low", "d"},    {"shifted", "i"}, {"group", "i"},  {"radii", "i"},  {"shares", "d"},
        {"own", "d", 1}, {"moved", "d", 1}, {"totals", "d", 1}, {"hessian", "d", 1},
    };
    AdditivePass pass;
    int n_groups, is_done = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&O&O&O&O&O&O&O&O&O&O&O&O&ddiii", INTO(v[LEFT]), INTO(v[WEIGHT]),
                          INTO(v[COST]), INTO(v[POINTS]), INTO(v[REACH]), INTO(v[LOW]), INTO(v[SHIFTED]),
                          INTO(v[GROUP]), INTO(v[RADII]), INTO(v[SHARES]), INTO(v[OWN]), INTO(v[MOVED]),
                          INTO(v[TOTALS]), INTO(v[HESSIAN]), &pass.intercept, &pass.eps, &pass.loss, &n_groups,
                          &pass.step))
        goto done;
    pass.left = v[LEFT].view.buf, pass.weight = v[WEIGHT].view.buf, pass.cost = v[COST].view.buf;
    pass.points = v[POINTS].view.buf, pass.reach = v[REACH].view.buf, pass.low = v[LOW].view.buf;
    pass.shifted = v[SHIFTED].view.buf, pass.group = v[GROUP].view.buf, pass.radii = v[RADII].view.buf;
    pass.shares = v[SHARES].view.buf, pass.own = v[OWN].view.buf, pass.moved = v[MOVED].view.buf;
    pass.totals = v[TOTALS].view.buf, pass.hessian = v[HESSIAN].length > 0 ? v[HESSIAN].view.buf : NULL;
    pass.n_rows = v[COST].length, pass.n_columns = v[GROUP].length, pass.n_points = v[POINTS].length - 1;
    pass.n_slices = v[LOW].length, pass.n_radii = v[RADII].length, pass.n_groups = n_groups;
    pass.size = pass.n_points + pass.n_slices + 2;
    Py_ssize_t n_cells = pass.n_rows * pass.n_columns;
    if (!has_length(&v[LEFT], n_cells) || !has_length(&v[WEIGHT], n_cells) ||
        !has_length(&v[REACH], pass.n_points + 1) || !has_length(&v[SHIFTED], pass.n_columns) ||
        !has_length(&v[SHARES], pass.n_radii) || !has_length(&v[OWN], pass.n_points + 1) ||
        !has_length(&v[MOVED], pass.n_slices) || !has_length(&v[TOTALS], 3) ||
        (pass.hessian != NULL && !has_length(&v[HESSIAN], pass.size * pass.size)))
        goto done;
    if (pass.n_points < 1 || n_groups < 1 || pass.step < 1 || !(pass.eps >= 0) || pass.loss < SQUARED_HINGE ||
        pass.loss > LOGISTIC || !are_below(&v[LEFT], pass.n_points) || !are_below(&v[REACH], pass.n_slices) ||
        !are_below(&v[GROUP], n_groups) || !are_below(&v[RADII], INT_MAX)) {
        PyErr_SetString(PyExc_ValueError, "an index of the rows or of the adversary is out of range.");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS;
    is_done = additive_run(&pass);
    Py_END_ALLOW_THREADS;
    if (!is_done)
        PyErr_NoMemory();
done:
    release_vectors(v, N_VECTORS);
    return is_done ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"new_solver", new_solver, METH_VARARGS, "Return a subspace solver over CSR rows that starts at these weights."},
    {"advance", advance, METH_VARARGS, "Advance it to about this gap, for at most so many steps."},
    {"write_iterate", write_iterate, METH_VARARGS, "Write weights, slopes and the best dual vector into arrays."},
    {"summarise_rows", summarise_rows, METH_VARARGS, "Write largest numbers and sums of squares of CSR rows."},
    {"additive_pass", additive_pass, METH_VARARGS, "Add sums over rows of the robust additive model to arrays."},
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
                           PyModule_AddIntConstant(module, "STALLED", STALLED) ||
                           PyModule_AddIntConstant(module, "STEP_LIMIT", STEP_LIMIT))) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
