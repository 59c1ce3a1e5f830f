"""Arguments of the compiled kernels: what is wrong is refused, and all that was lent is given back."""

from __future__ import annotations

import datetime as dt
import gc
import sys
import threading
from array import array

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from exclusivity.kernels import compiled
from exclusivity.rows import design as design_module
from kernels.kernel_cases import ENDINGS, needs_compiled, sparse_rows

pytestmark = needs_compiled

REFUSED = (TypeError, ValueError, BufferError)
N_ROWS, N_FEATURES, N_NUMBERS = 6, 4, 12


def solver_arguments():
    """By name, in the order of ``new_solver``: six rows of two numbers each."""
    rng = np.random.default_rng(0)
    return {
        "numbers": rng.normal(size=N_NUMBERS),
        "columns": np.tile(np.array([0, 2, 1, 3], dtype=np.int32), 3),
        "starts": np.arange(0, N_NUMBERS + 1, 2, dtype=np.int32),
        "labels": np.array([1.0, -1.0] * 3),
        "costs": np.ones(N_ROWS),
        "weights": np.zeros(N_FEATURES),
        "centre": np.zeros(N_ROWS),
        "mean_squares": np.ones(N_FEATURES),
        "intercept": 0.0,
        "stiffness": 0.5,
        "top": np.inf,
        "width": 0.0,
        "has_intercept": True,
    }


def summary_arguments():
    """By name, in the order of ``summarise_rows``."""
    rows = {
        name: value for name, value in solver_arguments().items() if name in ("numbers", "columns", "starts")
    }
    targets = {"largest": N_FEATURES, "row_squares": N_ROWS, "feature_squares": N_FEATURES}
    return rows | {name: np.zeros(size) for name, size in targets.items()}


def started(**changes):
    return compiled.new_solver(*(solver_arguments() | changes).values())


def targets():
    return [np.empty(N_FEATURES), np.empty(N_ROWS), np.empty(N_ROWS)]


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


# What may be wrong with any vector of numbers, whoever asks for it.
WRONG_VECTORS = {
    "nothing": lambda v: None,
    "a number": lambda v: 3.0,
    "a list": lambda v: v.tolist(),
    "bytes": lambda v: v.tobytes(),
    "no dimension": lambda v: np.array(v[0]),
    "two dimensions": lambda v: v[None],
    "a column": lambda v: v[:, None],
    "steps": lambda v: np.repeat(v, 2)[::2],
    "backwards": lambda v: v[::-1],
    "other bytes first": lambda v: v.astype(v.dtype.newbyteorder()),
    "complex": lambda v: v.astype(complex),
    "small integers": lambda v: v.astype(np.int16),
    "unsigned": lambda v: v.astype(np.uint64),
    "booleans": lambda v: v.astype(bool),
    "objects": lambda v: v.astype(object),
    "half floats": lambda v: v.astype(np.float16),
    "records": lambda v: np.zeros(len(v), dtype=[("a", "f8")]),
    "dates": lambda v: np.zeros(len(v), dtype="M8[s]"),
    "too short": lambda v: v[:-1],
    "too long": lambda v: np.append(v, v[-1:]),
    "empty": lambda v: v[:0],
}
OF_SOLVER = ["numbers", "columns", "starts", "labels", "costs", "weights", "centre", "mean_squares"]
OF_SUMMARY = ["numbers", "columns", "starts", "largest", "row_squares", "feature_squares"]


@pytest.mark.parametrize("wrong", WRONG_VECTORS)
@pytest.mark.parametrize("name", OF_SOLVER)
def test_a_solver_needs_its_vectors_as_they_are(name, wrong):
    arguments = solver_arguments()
    arguments[name] = WRONG_VECTORS[wrong](arguments[name])
    if name == "mean_squares" and wrong == "nothing":
        assert compiled.advance(compiled.new_solver(*arguments.values()), 1e-6, 50)[0] == compiled.CONVERGED
        return
    counts = [sys.getrefcount(value) for value in arguments.values()]
    with pytest.raises(REFUSED):
        compiled.new_solver(*arguments.values())
    assert [sys.getrefcount(value) for value in arguments.values()] == counts


@pytest.mark.parametrize("wrong", [*WRONG_VECTORS, "read-only"])
@pytest.mark.parametrize("name", OF_SUMMARY)
def test_a_survey_needs_its_vectors_as_they_are(name, wrong):
    arguments = summary_arguments()
    arguments[name] = (
        read_only(arguments[name]) if wrong == "read-only" else WRONG_VECTORS[wrong](arguments[name])
    )
    if wrong == "read-only" and name in ("numbers", "columns", "starts"):
        compiled.summarise_rows(*arguments.values())
        assert arguments["largest"].max() == np.abs(arguments["numbers"]).max()
        return
    counts = [sys.getrefcount(value) for value in arguments.values()]
    with pytest.raises(REFUSED):
        compiled.summarise_rows(*arguments.values())
    assert [sys.getrefcount(value) for value in arguments.values()] == counts


@pytest.mark.parametrize("wrong", [*WRONG_VECTORS, "read-only", "float32"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_solver_is_written_into_vectors_of_its_own_size_only(at, wrong):
    solver, into = started(), targets()
    change = {"read-only": read_only, "float32": lambda v: v.astype(np.float32)} | WRONG_VECTORS
    with np.errstate(invalid="ignore"):  # of numbers that nobody has written
        into[at] = change[wrong](into[at])
    counts = [sys.getrefcount(value) for value in into]
    with pytest.raises(REFUSED):
        compiled.write_iterate(solver, *into)
    assert [sys.getrefcount(value) for value in into] == counts
    compiled.write_iterate(solver, *targets())


@pytest.mark.parametrize("name", ["labels", "costs", "weights", "centre", "mean_squares"])
def test_only_the_numbers_of_the_rows_may_be_float32(name):
    with pytest.raises(TypeError, match=name):
        started(**{name: solver_arguments()[name].astype(np.float32)})
    started(numbers=solver_arguments()["numbers"].astype(np.float32))


INDICES = pytest.mark.parametrize("kind", [np.int32, np.int64])


def refused_rows(**changes):
    """Neither a solver nor a summary takes such rows, and both let go of them."""
    for arguments, call in (
        (solver_arguments() | changes, compiled.new_solver),
        (summary_arguments() | changes, compiled.summarise_rows),
    ):
        counts = [sys.getrefcount(value) for value in arguments.values()]
        with pytest.raises(REFUSED):
            call(*arguments.values())
        assert [sys.getrefcount(value) for value in arguments.values()] == counts


BEYOND = {
    np.int32: [N_FEATURES, -1, 2**31 - 1, -(2**31)],
    np.int64: [N_FEATURES, -1, 2**31, 2**32, -(2**32), 2**63 - 1, -(2**63)],
}


@pytest.mark.parametrize("at", [0, 5, N_NUMBERS - 1])
@pytest.mark.parametrize(("kind", "column"), [(kind, each) for kind in BEYOND for each in BEYOND[kind]])
def test_columns_are_features(kind, column, at):
    columns, starts = (solver_arguments()[name].astype(kind) for name in ("columns", "starts"))
    columns[at] = column
    refused_rows(columns=columns, starts=starts)


@INDICES
@pytest.mark.parametrize(
    "starts",
    [
        [1, 2, 4, 6, 8, 10, 12],
        [-2, 2, 4, 6, 8, 10, 12],
        [0, 2, 4, 6, 8, 10, 11],
        [0, 2, 4, 6, 8, 10, 13],
        [0, 2, 4, 6, 8, 13, 12],
        [0, 2, 4, 3, 8, 10, 12],
        [0, -1, 4, 6, 8, 10, 12],
        [0, 2**31 - 1, 4, 6, 8, 10, 12],
        [0, -(2**31), 4, 6, 8, 10, 12],
        [0, 2, 4, 6, 8, 10, -12],
        [0, 0, 0, 0, 0, 0, 0],
    ],
    ids=str,
)
def test_rows_begin_where_the_last_one_ended(starts, kind):
    columns = solver_arguments()["columns"].astype(kind)
    refused_rows(columns=columns, starts=np.array(starts, dtype=kind))


def test_indices_are_of_one_kind():
    columns, starts = (solver_arguments()[name] for name in ("columns", "starts"))
    refused_rows(columns=columns.astype(np.int64))
    refused_rows(starts=starts.astype(np.int64))
    started(columns=columns.astype(np.int64), starts=starts.astype(np.int64))


def test_there_are_rows():
    nothing, zero = np.empty(0), np.zeros(1, dtype=np.int32)
    empty = {"numbers": nothing, "columns": zero[:0], "starts": zero}
    with pytest.raises(ValueError, match="no rows"):
        started(**empty, labels=nothing, costs=nothing, centre=nothing)
    with pytest.raises(ValueError, match="no rows"):
        compiled.summarise_rows(*empty.values(), np.zeros(3), nothing, np.zeros(3))


def test_rows_may_have_no_numbers_and_no_features():
    nothing, starts = np.empty(0), np.zeros(N_ROWS + 1, dtype=np.int32)
    empty = {"numbers": nothing, "columns": starts[:0], "starts": starts}
    solver = started(**empty, weights=nothing, mean_squares=nothing)
    ending, intercept, _, objective, *_ = compiled.advance(solver, 1e-9, 10)
    assert ending == compiled.CONVERGED
    assert intercept == pytest.approx(0, abs=1e-9)
    assert objective == pytest.approx(N_ROWS)
    into = [nothing, *targets()[1:]]
    compiled.write_iterate(solver, *into)
    np.testing.assert_allclose(into[1], 2.0)
    lengths = np.full(N_ROWS, 7.0)
    compiled.summarise_rows(*empty.values(), nothing, lengths, nothing)
    np.testing.assert_array_equal(lengths, 0)


@pytest.mark.parametrize(
    ("stiffness", "width"),
    [(0.0, 0.0), (0.5, -0.5), (0.0, -1.0), (np.nan, 1.0), (0.5, np.nan), (-np.inf, 1.0)],
)
def test_a_loss_with_a_corner_needs_a_width(stiffness, width):
    with pytest.raises(ValueError, match="needs a width"):
        started(stiffness=stiffness, width=width)


def test_all_arguments_are_needed():
    arguments = [*solver_arguments().values()]
    for wrong in (arguments[:-1], [*arguments, 1.0], []):
        with pytest.raises(TypeError):
            compiled.new_solver(*wrong)
    with pytest.raises(TypeError):
        compiled.new_solver(*arguments[:8], "zero", *arguments[9:])
    with pytest.raises(TypeError):
        compiled.summarise_rows()
    solver = started()
    with pytest.raises(TypeError):
        compiled.advance(solver, 1e-6)
    with pytest.raises(TypeError):
        compiled.advance(solver, 1e-6, 2.5)
    with pytest.raises(OverflowError):
        compiled.advance(solver, 1e-6, 2**40)
    for most_steps in (2**31 - 1, 1_000_001):
        with pytest.raises(ValueError, match="at most 1000000 steps at a time"):
            compiled.advance(solver, 1e-6, most_steps)
    with pytest.raises(TypeError):
        compiled.write_iterate(solver)


@pytest.mark.parametrize(
    "other", [None, object(), 7, dt.datetime_CAPI], ids=["None", "object", "7", "capsule"]
)
def test_only_a_solver_goes_on(other):
    with pytest.raises((TypeError, ValueError)):
        compiled.advance(other, 1e-6, 5)
    with pytest.raises((TypeError, ValueError)):
        compiled.write_iterate(other, *targets())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -1.0])
@pytest.mark.parametrize(
    "name", [*OF_SOLVER[:1], *OF_SOLVER[3:], "intercept", "stiffness", "top", "width", "goal"]
)
def test_no_number_makes_a_solver_without_end(name, value):
    """Nonsense in, nonsense out: but in few steps, and nothing beyond the arrays is touched."""
    arguments, goal = solver_arguments() | {"width": 0.1}, 1e-9
    if name == "goal":
        goal = value
    elif np.ndim(arguments[name]) == 0:
        arguments[name] = value
    else:
        arguments[name] = np.where(np.arange(len(arguments[name])) % 2 == 0, value, arguments[name])
    try:
        solver = compiled.new_solver(*arguments.values())
    except ValueError:
        assert name in ("stiffness", "width")
        return
    ending, *place = compiled.advance(solver, goal, 2000)
    assert ending in ENDINGS
    assert all(isinstance(each, float) for each in place)
    guarded = [np.full(size + 2, 1234.5) for size in (N_FEATURES, N_ROWS, N_ROWS)]
    compiled.write_iterate(solver, *(each[1:-1] for each in guarded))
    assert all(each[0] == each[-1] == 1234.5 for each in guarded)


@pytest.mark.parametrize("most_steps", [0, -1, -(2**31)])
def test_no_steps_lead_nowhere(most_steps):
    solver, before, after = started(), targets(), targets()
    assert (
        compiled.advance(solver, 1e-9, most_steps)[0] == compiled.STEP_LIMIT
    )  # it has found out where it is
    compiled.write_iterate(solver, *before)
    assert compiled.advance(solver, 1e-9, most_steps)[0] == compiled.STEP_LIMIT
    compiled.write_iterate(solver, *after)
    np.testing.assert_array_equal(before[0], solver_arguments()["weights"])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- what is lent


def lent():
    """The arguments in arrays that refuse to grow while anybody looks at their memory."""
    codes = {np.dtype(np.float64): "d", np.dtype(np.int32): "i"}
    return {
        name: array(codes[value.dtype], value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in solver_arguments().items()
    }


def is_free(vector):
    """Whether nobody looks at it any more."""
    try:
        vector.append(0)
    except BufferError:
        return False
    vector.pop()
    return True


def test_a_solver_holds_its_rows_as_long_as_it_lives_and_nothing_else():
    arguments = lent()
    solver = compiled.new_solver(*arguments.values())
    held = {name for name in OF_SOLVER if not is_free(arguments[name])}
    assert held == {"numbers", "columns", "starts", "mean_squares"}
    assert compiled.advance(solver, 1e-9, 1000)[0] == compiled.CONVERGED
    into = [array("d", bytes(8 * size)) for size in (N_FEATURES, N_ROWS, N_ROWS)]
    compiled.write_iterate(solver, *into)
    assert any(into[0])
    assert all(map(is_free, into))
    del solver
    assert all(is_free(arguments[name]) for name in OF_SOLVER)


def test_rows_outlive_their_owners():
    arguments = solver_arguments()
    solver, same = started(), compiled.new_solver(*arguments.values())
    del arguments
    gc.collect()
    junk = [np.full(N_NUMBERS, np.nan) for _ in range(100)]  # where they were, were they gone
    assert compiled.advance(solver, 1e-9, 1000) == compiled.advance(same, 1e-9, 1000)
    assert len(junk) == 100


@pytest.mark.parametrize("name", OF_SOLVER)
def test_a_refused_solver_holds_nothing(name):
    arguments = lent()
    arguments[name].pop()
    with pytest.raises(ValueError, match=r"must have|must not"):
        compiled.new_solver(*arguments.values())
    assert all(is_free(arguments[each]) for each in OF_SOLVER)
    arguments = lent() | {name: array("h", [1])}
    with pytest.raises(TypeError, match=name):
        compiled.new_solver(*arguments.values())
    assert all(is_free(arguments[each]) for each in OF_SOLVER)


def test_a_survey_holds_nothing():
    arguments = {name: lent()[name] for name in OF_SUMMARY[:3]}
    into = [array("d", bytes(8 * size)) for size in (N_FEATURES, N_ROWS, N_FEATURES)]
    compiled.summarise_rows(*arguments.values(), *into)
    assert all(map(is_free, [*arguments.values(), *into]))
    arguments["columns"][3] = N_FEATURES
    with pytest.raises(ValueError, match="columns must be from 0"):
        compiled.summarise_rows(*arguments.values(), *into)
    into[1].pop()
    with pytest.raises(ValueError, match="starts must have 6 numbers"):
        compiled.summarise_rows(*arguments.values(), *into)
    assert all(map(is_free, [*arguments.values(), *into]))


def test_one_thread_at_a_time_goes_on():
    X, y = sparse_rows(30_000, 300, 15)
    n_rows, n_features = X.shape
    solver = compiled.new_solver(
        *(
            X.data,
            X.indices,
            X.indptr,
            y,
            np.full(n_rows, 100.0),
            np.zeros(n_features),
            np.zeros(n_rows),
            None,
        ),
        *(0.0, 0.0, 1.0, 10.0, True),
    )
    over, refused = threading.Event(), []

    def disturb():
        while not (over.is_set() or refused):
            try:
                compiled.write_iterate(solver, np.empty(n_features), np.empty(n_rows), np.empty(n_rows))
            except RuntimeError as error:
                with pytest.raises(RuntimeError, match="in another thread"):
                    compiled.advance(solver, 0.0, 1)
                refused.append(str(error))

    other = threading.Thread(target=disturb)
    other.start()
    try:
        while not refused:
            ending, *_ = compiled.advance(solver, 0.0, 20)
            assert ending == compiled.STEP_LIMIT, "it has come to its end undisturbed"
    finally:
        over.set()
        other.join()
    assert refused == ["the solver is running in another thread."]
    assert compiled.advance(solver, 0.0, 1)[0] == compiled.STEP_LIMIT


# ---------------------------------------------------------------- summaries


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 40),
    n_features=st.integers(1, 30),
    density=st.floats(0, 1),
    kind=st.sampled_from([(np.float32, 1.0), (np.float32, 1e30)])
    | st.sampled_from([(np.float64, scale) for scale in (1.0, 1e-200, 1e200)]),
    index=st.sampled_from([np.int32, np.int64]),
)
def test_a_compiled_survey_is_that_of_numpy(seed, n_rows, n_features, density, kind, index):
    rng, (number, scale) = np.random.default_rng(seed), kind
    X = sparse.random(n_rows, n_features, density=density, random_state=rng, format="csr")
    X = sparse.csr_array(X)
    X.data = (scale * (X.data - 0.5)).astype(number)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert X.dtype == number
    assert design_module.has_compiled_loops(X)
    found = design_module.summarise(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_module, "has_compiled_loops", lambda X: False)
        known = design_module.summarise(X)
    np.testing.assert_array_equal(found.largest, known.largest)
    np.testing.assert_allclose(found.row_squares, known.row_squares, rtol=1e-13)
    np.testing.assert_allclose(found.feature_squares, known.feature_squares, rtol=1e-13)


def test_a_survey_is_what_it_says():
    X = sparse.csr_array(np.array([[0.0, -3.0, 0.0], [0.0, 0.0, 0.0], [4.0, 2.0, 0.0]]))
    found = design_module.summarise(X)
    np.testing.assert_array_equal(found.largest, [4, 3, 0])
    np.testing.assert_array_equal(found.row_squares, [9, 0, 20])
    np.testing.assert_array_equal(found.feature_squares, [16, 13, 0])


@pytest.mark.parametrize("change", ["integers", "other indices", "steps", "spare room"])
def test_other_matrices_are_left_to_numpy(change):
    X, _ = sparse_rows(20, 30, 2)
    plain = design_module.summarise(X)
    if change == "integers":
        X = (10 * X).astype(int)
        plain = design_module.summarise(X.astype(float))
    elif change == "other indices":
        X.indptr = X.indptr.astype(np.int64)
    elif change == "steps":
        X.data = np.repeat(X.data, 2)[::2]
    else:
        X.data, X.indices = np.append(X.data, 7.0), np.append(X.indices, np.int32(1))
    assert not design_module.has_compiled_loops(X)
    if change != "spare room":  # of which NumPy's sums by feature know nothing
        for one, other in zip(design_module.summarise(X), plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
