"""Callbacks, time limits, Ctrl-C and threads."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classifier.erm_cases import CONVEX_SOLVERS, DIVERSE, binary_data, class_data, radius
from ctrl_c import CtrlC, needs_signals, seconds_later
from exclusivity import ERMClassifier
from exclusivity.callbacks import TimeLimit

sklearn_callback = pytest.importorskip("sklearn.callback")

by_solver = pytest.mark.parametrize("solver", CONVEX_SOLVERS)

# Fits that go on for ever: the paper's rule can never be met, and features of HUGE size are too much for alm.
ENDLESS = {
    "paper": {"solver": "paper", "tol": 1e-12, "solver_options": {"change": 0.0}, "max_iter": 10**9},
    "alm": {"solver": "alm", "p": 1, "tol": 1e-12, "max_iter": 10**9},
}
HUGE = 1e30


class Recorder:
    """Writes down every hook; stops where ``stop`` says so."""

    def __init__(self, stop=lambda context: False):
        self.stop = stop
        self.calls = []
        self.lock = threading.Lock()

    def write(self, hook, context, **more):
        path = []
        node = context
        while node is not None:
            path.insert(0, (node.task_name, node.task_id))
            node = node.parent
        with self.lock:
            self.calls.append({"hook": hook, "path": tuple(path), "task": context.task_name} | more)

    def setup(self, estimator, context):
        self.write("setup", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.write("begin", context, X=X, y=y, metadata=metadata)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.write("end", context, X=X, y=y, metadata=metadata, fitted=fitted_estimator)
        return self.stop(context)

    def teardown(self, estimator, context):
        self.write("teardown", context)

    def hooks(self, *tasks):
        return [(c["hook"], c["path"][1:]) for c in self.calls if not tasks or c["task"] in tasks]

    def of(self, hook, task):
        return [c for c in self.calls if c["hook"] == hook and c["task"] == task]


class Everywhere(Recorder):
    """A callback for meta-estimators, which hand it down (as they do with ProgressBar)."""

    max_propagation_depth = None


@pytest.fixture(scope="module")
def two():
    return binary_data()


@pytest.fixture(scope="module")
def three():
    return class_data()


# The protocol


@by_solver
def test_hooks_come_in_order(solver, two):
    recorder = Recorder()
    clf = ERMClassifier(3, solver=solver).set_callbacks(recorder).fit(*two)
    hooks = recorder.hooks("fit", "iteration")
    assert hooks[0] == ("setup", ())
    assert hooks[1] == ("begin", ())
    assert hooks[-2] == ("end", ())
    assert hooks[-1] == ("teardown", ())
    steps = hooks[2:-2]
    assert [hook for hook, _ in steps] == ["begin", "end"] * clf.n_iter_[0]
    numbers = [path[-1] for _, path in steps]
    assert numbers == [("iteration", i // 2) for i in range(2 * clf.n_iter_[0])]
    assert {path[0] for _, path in steps} == {("1 against 0", 0)}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_every_task_that_begins_ends(n_jobs, multi_class, three):
    recorder = Recorder()
    ERMClassifier(3, multi_class=multi_class, n_jobs=n_jobs).set_callbacks(recorder).fit(*three)
    open_tasks = []
    for call in recorder.calls:
        if call["hook"] == "begin":
            assert not open_tasks or call["path"][:-1] in open_tasks, "a task begins outside its parent"
            open_tasks.append(call["path"])
        elif call["hook"] == "end":
            assert call["path"] in open_tasks
            open_tasks.remove(call["path"])
            assert not [p for p in open_tasks if p[: len(call["path"])] == call["path"]], (
                "ends before its children"
            )
    assert not open_tasks, f"never ended: {open_tasks}"


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(("multi_class", "names"), [
    ("ovr", ["ant against the rest", "bee against the rest", "cat against the rest"]),
    ("ovo", ["ant against bee", "ant against cat", "bee against cat"]),
])  # fmt: skip
def test_problems_are_tasks_with_names(n_jobs, multi_class, names, three):
    X, y = three
    recorder = Recorder()
    clf = ERMClassifier(3, multi_class=multi_class, n_jobs=n_jobs).set_callbacks(recorder)
    clf.fit(X, np.array(["ant", "bee", "cat"])[y])
    seen = [c["path"][1] for c in recorder.calls if c["hook"] == "begin" and len(c["path"]) == 2]
    assert sorted(seen) == sorted((name, i) for i, name in enumerate(names))
    for problem, (name, n_iter) in enumerate(zip(names, clf.n_iter_, strict=True)):
        steps = [c for c in recorder.of("end", "iteration") if c["path"][1] == (name, problem)]
        assert len(steps) == n_iter
    plain = ERMClassifier(3, multi_class=multi_class).fit(X, np.array(["ant", "bee", "cat"])[y])
    np.testing.assert_array_equal(clf.components_, plain.components_)


def test_the_fit_task_shows_data_and_metadata(two):
    X, y = two
    weights = np.linspace(1, 2, len(y))
    recorder = Recorder()
    clf = ERMClassifier(3).set_callbacks(recorder).fit(X, y, sample_weight=weights)
    (begin,), (end,) = recorder.of("begin", "fit"), recorder.of("end", "fit")
    np.testing.assert_array_equal(begin["X"], X)
    np.testing.assert_array_equal(begin["y"], y)
    np.testing.assert_array_equal(begin["metadata"]["sample_weight"], weights)
    np.testing.assert_array_equal(end["X"], X)
    np.testing.assert_array_equal(end["fitted"].predict(X), clf.predict(X))
    np.testing.assert_array_equal(end["metadata"]["sample_weight"], weights)


@pytest.mark.parametrize("stop_at", [1, 3])
@by_solver
def test_a_true_answer_ends_the_fit(solver, stop_at, two):
    recorder = Recorder(
        stop=lambda context: context.task_name == "iteration" and context.task_id == stop_at - 1
    )
    clf = ERMClassifier(3, p=1, solver=solver, tol=1e-12).set_callbacks(recorder).fit(*two)  # and no warning
    assert clf.n_iter_[0] == stop_at
    assert len(clf.history_[0]) == stop_at
    assert not clf.converged_[0]
    assert clf.dual_gap_[0] > 1e-12
    assert clf.predict(two[0]).shape == two[1].shape
    assert recorder.calls[-1]["hook"] == "teardown"


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_true_answer_ends_one_problem(n_jobs, three):
    recorder = Recorder(stop=lambda context: context.task_name == "iteration" and context.parent.task_id == 1)
    clf = ERMClassifier(3, solver="alm", n_jobs=n_jobs).set_callbacks(recorder).fit(*three)
    assert clf.n_iter_[1] == 1
    assert min(clf.n_iter_[[0, 2]]) > 1
    np.testing.assert_array_equal(clf.converged_, [True, False, True])


@by_solver
def test_the_estimator_of_an_iteration_can_predict(solver, two):
    X, y = two
    recorder = Recorder()
    clf = ERMClassifier(3, solver=solver).set_callbacks(recorder).fit(X, y)
    models = [call["fitted"] for call in recorder.of("end", "iteration")]
    assert len(models) == clf.n_iter_[0]
    for model in models:
        assert model is not clf
        assert model.predict(X).shape == y.shape
        assert model.coef_.shape == (1, X.shape[1])
        assert np.isfinite(model.decision_function(X)).all()
    # each shows its own iteration, not all of them the last one
    assert len({model.coef_.tobytes() for model in models}) > 1 or len(models) == 1
    best = min(np.linalg.norm(model.coef_ - clf.coef_) for model in models)
    assert best <= radius(clf)[0]


def test_no_half_finished_estimator_of_many_classes(three):
    recorder = Recorder()
    ERMClassifier(3).set_callbacks(recorder).fit(*three)
    assert all(call["fitted"] is None for call in recorder.of("end", "iteration"))


def test_scikit_learns_scoring_monitor_scores_every_iteration(two):
    monitor = sklearn_callback.ScoringMonitor(scoring="accuracy")
    clf = ERMClassifier(3, solver="alm").set_callbacks(monitor).fit(*two)
    rows = monitor.get_logs().data
    scores = [row.get("accuracy") for row in rows if row["task_name"] == "iteration"]
    assert len(scores) == clf.n_iter_[0]
    assert None not in scores, "iterations were logged without a score"
    assert scores[-1] > 0.8


@pytest.mark.parametrize("data", ["two", "three"])
def test_progress_bar(data, request, capsys):
    pytest.importorskip("rich")
    clf = ERMClassifier(3).set_callbacks(sklearn_callback.ProgressBar())
    clf.fit(*request.getfixturevalue(data))
    assert "ERMClassifier - fit" in capsys.readouterr().out
    clone(clf).fit(*request.getfixturevalue(data))


def test_meta_estimators_hand_callbacks_down(two):
    X, y = two
    inside = Everywhere()
    pipeline = make_pipeline(StandardScaler(), ERMClassifier(3)).set_callbacks(inside).fit(X, y)
    assert len(inside.of("end", "iteration")) == pipeline[-1].n_iter_[0]
    assert [c["hook"] for c in inside.calls].count("setup") == 1
    searching = Everywhere()
    GridSearchCV(ERMClassifier(3), {"C": [0.1, 1.0]}, cv=2).set_callbacks(searching).fit(X, y)
    assert len(searching.of("end", "iteration")) >= 5
    assert searching.calls[-1]["hook"] == "teardown"


def test_callbacks_are_torn_down_after_an_error_and_can_be_taken_away(two):
    X, y = two

    class Failing(Recorder):
        def on_fit_task_begin(self, estimator, context):
            super().on_fit_task_begin(estimator, context)
            if context.task_name == "iteration":
                raise RuntimeError("no more")

    failing = Failing()
    clf = ERMClassifier(3).set_callbacks(failing)
    with pytest.raises(RuntimeError, match="no more"):
        clf.fit(X, y)
    assert failing.calls[-1]["hook"] == "teardown"
    with pytest.raises(NotFittedError):
        clf.predict(X)
    clf.set_callbacks().fit(X, y)
    assert clf.converged_.all()


def test_an_error_in_a_thread_reaches_the_caller_at_once(three):
    begun = monotonic()

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "iteration" and context.parent.task_id == 1:
                raise RuntimeError("no more")
            return monotonic() > begun + 120  # or the other problems would go on for ever

    clf = ERMClassifier(3, **ENDLESS["paper"], n_jobs=3).set_callbacks(Failing())
    with pytest.raises(RuntimeError, match="no more"):
        clf.fit(*three)
    assert monotonic() - begun < 60


def test_only_callbacks_are_callbacks():
    with pytest.raises(TypeError, match="FitCallback protocol"):
        ERMClassifier().set_callbacks(print)


# Time limits


@pytest.mark.parametrize("solver", ENDLESS)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_time_limit_ends_a_long_fit(solver, n_jobs, three):
    X, y = three
    limit = TimeLimit(0.3)
    clf = ERMClassifier(3, **ENDLESS[solver], n_jobs=n_jobs).set_callbacks(limit)
    for labels in (y == 0, y):  # the clock starts anew with each fit
        begun = monotonic()
        clf.fit(HUGE * X, labels)
        assert 0.25 < monotonic() - begun < 60  # without the limit it would never end
        assert not clf.converged_.any()
        assert np.all(clf.dual_gap_ > clf.tol)
        assert np.isfinite(clf.components_).all()
        assert set(clf.predict(HUGE * X)) <= set(labels)


def test_a_time_limit_does_not_disturb_a_short_fit(two):
    clf = ERMClassifier(3).set_callbacks(TimeLimit(60)).fit(*two)
    assert clf.converged_.all()
    np.testing.assert_array_equal(clf.coef_, ERMClassifier(3).fit(*two).coef_)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_time_limits_are_positive(seconds):
    with pytest.raises(ValueError, match="seconds must be positive"):
        TimeLimit(seconds)


def test_one_time_limit_may_serve_several_fits_at_once(two):
    limit = TimeLimit(0.4)
    fits = [clone(ERMClassifier(3, **ENDLESS["paper"])).set_callbacks(limit) for _ in range(2)]
    begun = monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda clf: clf.fit(*two), fits))
    assert monotonic() - begun < 60


# Ctrl-C


@needs_signals
@pytest.mark.parametrize("solver", ENDLESS)
@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("callbacks", [(), (Recorder(),)], ids=["plain", "callback"])
def test_ctrl_c_ends_a_long_fit_within_a_second(solver, data, n_jobs, callbacks, request):
    X, y = request.getfixturevalue(data)
    clf = ERMClassifier(3, **ENDLESS[solver], n_jobs=n_jobs).set_callbacks(*callbacks)
    threads = threading.active_count()
    with CtrlC(seconds_later(0.2)) as interrupt, pytest.raises(KeyboardInterrupt):
        clf.fit(HUGE * X, y)
    assert interrupt.seconds < 1
    assert threading.active_count() <= threads, "threads go on in the background"
    with pytest.raises(NotFittedError):
        clf.predict(X)
    clf.set_params(p=2, tol=1e-4, max_iter=None, solver_options=None).fit(X, y)
    fresh = clone(clf).set_params(n_jobs=None).fit(X, y)
    np.testing.assert_array_equal(clf.components_, fresh.components_)


@needs_signals
@pytest.mark.parametrize("solver", sorted(set(CONVEX_SOLVERS) - set(ENDLESS)))
@pytest.mark.parametrize("shape", [(4000, 800), (800, 4000)])
def test_ctrl_c_ends_a_heavy_fit_within_a_second(solver, shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(shape), rng.integers(0, 2, shape[0])
    clf = ERMClassifier(3, p=1, solver=solver, tol=1e-14)
    try:
        with CtrlC(seconds_later(0.1)) as interrupt:
            clf.fit(X, y)
    except KeyboardInterrupt:
        assert interrupt.seconds < 1
    else:
        pytest.skip("fitted before the interrupt")
    with pytest.raises(NotFittedError):
        clf.predict(X)


@needs_signals
def test_ctrl_c_during_a_second_fit_leaves_the_first_model_or_none(three):
    """Not a mixture: the width of the new data with the weights of the old."""
    X, y = three
    clf = ERMClassifier(3).fit(X, y)
    before = clf.predict(X)
    clf.set_params(**ENDLESS["paper"])
    with CtrlC(seconds_later(0.2)), pytest.raises(KeyboardInterrupt):
        clf.fit(X[:, :2], y)
    try:
        after = clf.predict(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)


@needs_signals
def test_ctrl_c_from_outside(tmp_path):
    """The real thing: another process, a real signal, its exit code."""
    script = textwrap.dedent(
        """
        import numpy as np
        from exclusivity import ERMClassifier
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((500, 20)), rng.integers(0, 4, 500)
        print("begin", flush=True)
        endless = {"solver_options": {"change": 0.0}, "max_iter": 10**9}
        ERMClassifier(10, solver="paper", n_jobs=2, verbose=1, **endless).fit(X, y)
        """
    )
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "begin\n"
        assert process.stdout.readline().startswith("[ERM]"), "it is in the middle of a fit"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.7)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)  # a second as a rule, and the end of the interpreter on a busy machine
        assert "KeyboardInterrupt" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


# Threads


@by_solver
def test_two_threads_are_one_after_the_other(solver, two, three):
    jobs = [(two, {"p": 1}), (three, {}), (two, {"exclusivity": 0.3}), (three, {"multi_class": "ovo"})] * 2
    jobs += [(three, DIVERSE)]
    machines = [ERMClassifier(3, **({"solver": solver, "n_jobs": 2} | more)) for _, more in jobs]
    alone = [clone(clf).fit(*data) for clf, (data, _) in zip(machines, jobs, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda clf, job: clf.fit(*job[0]), machines, jobs))
    for first, second in zip(alone, together, strict=True):
        np.testing.assert_array_equal(first.components_, second.components_)
        np.testing.assert_array_equal(first.component_intercepts_, second.component_intercepts_)
        np.testing.assert_array_equal(first.n_iter_, second.n_iter_)


def test_threads_may_share_the_data_and_predict_with_one_model(three):
    X, y = three
    clf = ERMClassifier(3).fit(X, y)
    expected = clf.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: clf.decision_function(X), range(16)):
            np.testing.assert_array_equal(scores, expected)
        for other in pool.map(lambda _: ERMClassifier(3).fit(X, y).decision_function(X), range(8)):
            np.testing.assert_array_equal(other, expected)
