/* Arrays from Python, checked. */

#ifndef EXCLUSIVITY_ARRAYS_H
#define EXCLUSIVITY_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one build for Python 3.11 and all that follow */
#include <Python.h>

/* A contiguous array of numbers of one of these kinds ("d", or "df" for either); 0 with an error set if it is not. */
int take_array(PyObject *array, const char *name, const char *kinds, int is_written, Py_buffer *view);
void release_arrays(Py_buffer arrays[], int n);
int has_length(const Py_buffer *view, Py_ssize_t length, const char *name);

/* One pass over encoded rows of the robust additive model: see additive.c. */
PyObject *additive_pass(PyObject *self, PyObject *args);

#endif
