"""A row source that is not ours, memory maps of several files: the optimum of the rows in memory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from exclusivity import ERMClassifier
from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import Contrast, ERMProblem, ExclusivityRegulariser, Objective
from exclusivity.rows.source import LocalBlocks, RowBlock
from exclusivity.solvers import newton as sample_module, solve_newton
from exclusivity.solvers.exclusive import solve_exclusive, solve_exclusive_targets
from exclusivity.solvers.newton import solve_targets
from exclusivity.solvers.run import Target
from extending.pages import names_of
from extending.test_own_loss import HuberisedHinge, Logistic

MappedFiles = names_of("add-a-row-source.md")["MappedFiles"]
ThreadedBlocks = names_of("add-a-row-source.md", 3)["ThreadedBlocks"]
TOL = 1e-8


def labelled_rows(n_rows, n_features=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    scores = X[:, :n_classes] + rng.normal(size=(n_rows, n_classes))
    return X, scores.argmax(axis=1)


@pytest.fixture
def mapped(tmp_path):
    def save(X, codes, n_files=3, block_rows=37):
        paths = [tmp_path / f"{number}.npy" for number in range(n_files)]
        for path, part in zip(paths, np.array_split(np.c_[X, codes], n_files), strict=True):
            np.save(path, part)
        return MappedFiles(paths, block_rows)

    return save


LOSSES = [PowerHinge(1), PowerHinge(1.5), PowerHinge(2), PowerHinge(3), HuberisedHinge(), Logistic()]
SETTINGS = [{}, {"fit_intercept": False}, {"sparsity": 5.0}]


# There is no method yet for a penalty on a loss that does not vanish.
@pytest.mark.parametrize(
    ("loss", "settings"),
    [case for case in product(LOSSES, SETTINGS) if "sparsity" not in case[1] or case[0].vanishes],
)
def test_the_optimum_is_that_of_rows_in_memory(mapped, loss, settings):
    X, codes = labelled_rows(200)
    y = np.where(codes == 1, 1.0, -1.0)
    problem = ERMProblem.build(X, y, n_members=3, cost=2.0, loss=loss, **settings)
    target = Target(problem.objective, Contrast("1 against 0", 1))
    [found] = solve_targets(mapped(X, codes), [target], tol=TOL)
    assert found.gap <= TOL
    assert found.objective == pytest.approx(problem.value(found.weights, found.intercepts), rel=1e-11)
    assert found.objective == pytest.approx(solve_newton(problem, tol=1e-10).objective, rel=2 * TOL)


@pytest.mark.parametrize("p", [1, 2])
def test_many_rows_are_sampled_and_banded(mapped, monkeypatch, p):
    monkeypatch.setattr(sample_module, "MANY_ROWS", 1000)
    X, codes = labelled_rows(4000)
    problem = ERMProblem.build(X, np.where(codes == 1, 1.0, -1.0), cost=2.0, p=p)
    source = mapped(X, codes, block_rows=500)
    [found] = solve_targets(source, [Target(problem.objective, Contrast("1", 1))], tol=1e-6)
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(solve_newton(problem, tol=1e-8).objective, rel=2e-6)


def test_classes_share_their_passes(mapped):
    X, codes = labelled_rows(150, n_classes=3)
    objective = Objective(PowerHinge(2), ExclusivityRegulariser(), cost=1.0, n_members=5)
    source = mapped(X, codes)
    passes = 0
    original = source.blocks

    def counting():
        nonlocal passes
        passes += 1
        return original()

    source.blocks = counting
    targets = [Target(objective, Contrast(str(c), c)) for c in range(3)]
    together = solve_targets(source, targets, tol=TOL)
    shared, passes = passes, 0
    alone = [solve_targets(source, [target], tol=TOL)[0] for target in targets]
    assert shared < passes
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


def test_a_list_of_sparse_blocks_is_a_source():
    X, codes = labelled_rows(120, n_features=30)
    X *= np.random.default_rng(1).random(X.shape) < 0.3

    class SparseBlocks(LocalBlocks):
        n_rows, n_features = X.shape

        def blocks(self):
            for rows in np.array_split(np.arange(len(X)), 4):
                yield RowBlock(sparse.csr_matrix(X[rows]), codes[rows].astype(np.int32), np.ones(len(rows)))

    for p in (1, 2):
        problem = ERMProblem.build(sparse.csr_matrix(X), np.where(codes == 1, 1.0, -1.0), p=p)
        [found] = solve_targets(SparseBlocks(), [Target(problem.objective, Contrast("1", 1))], tol=TOL)
        assert found.gap <= TOL
        assert found.objective == pytest.approx(solve_newton(problem, tol=1e-10).objective, rel=2 * TOL)


@pytest.mark.parametrize("kind", ["two classes", "one-vs-rest", "pairs"])
def test_members_on_different_features_are_those_of_rows_in_memory(mapped, kind):
    X, codes = labelled_rows(240, n_features=9, n_classes=2 if kind == "two classes" else 3)
    contrasts = {
        "two classes": [Contrast("1", 1)],
        "one-vs-rest": [Contrast(str(c), c) for c in range(3)],
        "pairs": [
            Contrast("1 against 0", 1, 0),
            Contrast("2 against 0", 2, 0),
            Contrast("2 against 1", 2, 1),
        ],
    }[kind]
    objective = Objective(PowerHinge(2), ExclusivityRegulariser(np.inf), cost=1.0, n_members=3)
    targets = [Target(objective, contrast) for contrast in contrasts]
    whole = RowBlock(X, codes.astype(np.int32), np.ones(len(X)))
    problems = [target.rows_of(whole) for target in targets]
    if kind == "one-vs-rest":
        problems = [problems[0].changed(labels=problem.labels) for problem in problems]
    found = solve_exclusive_targets(mapped(X, codes), targets, tol=TOL, random_state=0)
    wanted = solve_exclusive(problems, tol=TOL, random_state=0)
    for one, other in zip(found, wanted, strict=True):
        assert one.converged
        assert np.array_equal(one.partition, other.partition)
        assert one.objective == pytest.approx(other.objective, rel=2 * TOL)


def test_competing_members_need_rows_in_memory(mapped):
    objective = Objective(PowerHinge(2), ExclusivityRegulariser(2.0), cost=1.0, n_members=3)
    with pytest.raises(ValueError, match=r"need exclusivity = np\.inf for .* features; got 2"):
        solve_exclusive_targets(mapped(*labelled_rows(20)), [Target(objective, Contrast("1", 1))])


@pytest.mark.parametrize(("p", "regime"), [(1, "auto"), (1, "interior"), (1.5, "interior"), (2, "auto")])
def test_blocks_that_threads_ask_give_what_a_loop_gives(mapped, monkeypatch, p, regime):
    monkeypatch.setattr(sample_module, "MANY_ROWS", 100)  # a sample comes first, as for many rows
    source = mapped(*labelled_rows(400, n_classes=3))
    objective = Objective(PowerHinge(p), ExclusivityRegulariser(), cost=2.0, n_members=3)
    targets = [Target(objective, Contrast(f"{code}", code)) for code in range(3)]
    settings = {"tol": TOL, "regime": regime}
    threaded = ThreadedBlocks(source.blocks())
    for one, other in zip(
        solve_targets(source, targets, **settings), solve_targets(threaded, targets, **settings), strict=True
    ):
        assert other.gap <= TOL
        np.testing.assert_array_equal(other.weights, one.weights)
    threaded.pool.shutdown()


def test_blocks_of_tables_are_refused():
    pd = pytest.importorskip("pandas")

    class Frames(LocalBlocks):
        n_rows, n_features = 4, 1

        def blocks(self):
            yield RowBlock(pd.DataFrame({"a": np.arange(4.0)}), np.array([0, 0, 1, 1], np.int32), np.ones(4))

    with pytest.raises(TypeError, match=r"must be an array or a CSR matrix.*got DataFrame.*RobustAdditive"):
        ERMClassifier(2).fit_rows(Frames(), [0, 1])


@pytest.mark.parametrize("change", [-1, 1])
def test_blocks_that_are_not_those_of_the_last_pass_are_refused(mapped, monkeypatch, change):
    X, codes = labelled_rows(200)
    source, blocks, passes = mapped(X, codes), MappedFiles.blocks, []

    def changing(self):
        passes.append(list(blocks(self)))
        yield from passes[0] if len(passes) < 5 else [*passes[0], passes[0][0]][: len(passes[0]) + change]

    monkeypatch.setattr(MappedFiles, "blocks", changing)
    problem = ERMProblem.build(X, np.where(codes == 1, 1.0, -1.0), p=1)
    with pytest.raises(RuntimeError, match="more or fewer blocks than before"):
        solve_targets(source, [Target(problem.objective, Contrast("1", 1))], tol=1e-9)
