"""A solver that is not ours, behind the contract of ``SolverSpec``: known by name, as good as its proof."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusivity import ERMClassifier, erm_path
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import SOLVERS, SolverSpec, Status, register_solver, solve_all, solve_newton
from extending.pages import names_of


@pytest.fixture(scope="module", autouse=True)
def lbfgs():
    names_of("add-a-solver.md")
    yield
    del SOLVERS["lbfgs"]


def problem(kind="dense", **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < 0.7)
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=80) > 0.3, 1.0, -1.0)
    return ERMProblem.build(sparse.csr_matrix(X) if kind == "csr" else X, y, **settings)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.5, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_it_finds_the_optimum_and_proves_it(kind, p, fit_intercept):
    one = problem(kind, n_members=7, cost=3.0, p=p, fit_intercept=fit_intercept)
    (found,) = solve_all([one], "lbfgs", tol=1e-8)
    assert found.converged
    assert found.objective == pytest.approx(solve_newton(one, tol=1e-10).objective, rel=1e-7)
    assert found.gap >= 0


def test_what_it_cannot_do_is_said():
    for settings in ({"p": 1}, {"sparsity": 1.0}):
        with pytest.raises(ValueError, match="needs a smooth loss"):
            solve_all([problem(**settings)], "lbfgs")


def test_estimators_and_paths_know_it():
    X, y = problem().design.X, problem().labels
    clf = ERMClassifier(3, solver="lbfgs", solver_options={"memory": 5}, tol=1e-6).fit(X, y)
    assert clf.converged_.all()
    with pytest.raises(ValueError, match="Unknown solver option"):
        ERMClassifier(3, solver="lbfgs", solver_options={"memori": 5}).fit(X, y)
    path = erm_path(X, y, Cs=[0.1, 10.0], n_estimators=3, solver="lbfgs", tol=1e-6)
    assert np.all(path.gaps <= 1e-6)
    with pytest.raises(ValueError, match="cannot continue"):
        clf.set_params(warm_start=True).fit(X, y)


def test_its_callback_watches_and_stops_it():
    seen = []
    (found,) = solve_all(
        [problem(p=1.5)], "lbfgs", tol=0.0, callbacks=[lambda state: seen.append(state) or len(seen) == 3]
    )
    assert found.status is Status.CALLBACK
    assert [state.record.iteration for state in seen] == [1, 2, 3]
    assert found.objective == seen[-1].record.objective


def test_options_can_be_left_out(monkeypatch):
    def plain(problem, *, options, **settings):
        return solve_newton(problem, **settings)

    monkeypatch.setitem(SOLVERS, "plain", SolverSpec(solve=plain))
    (found,) = solve_all([problem()], "plain")
    assert found.converged
    with pytest.raises(ValueError, match="'memory'; this solver takes none"):
        solve_all([problem()], "plain", options={"memory": 5})


def test_names_are_taken_once():
    spec = SolverSpec(solve=solve_newton)
    for name in ("auto", "newton", "exclusive"):
        with pytest.raises(ValueError, match="already"):
            register_solver(name, spec)
    mine = SOLVERS["lbfgs"]
    register_solver("lbfgs", mine)  # a cell of a notebook that is run again
    assert SOLVERS["lbfgs"] is mine
