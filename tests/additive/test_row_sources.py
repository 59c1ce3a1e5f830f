"""RobustAdditiveClassifier on rows in blocks and on Dask collections: the model of the rows in memory."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from additive.test_tables import mixed
from exclusivity import RobustAdditiveClassifier
from exclusivity.rows import LocalBlocks, RowBlock

pd = pytest.importorskip("pandas")


class Blocks(LocalBlocks):
    """Tables with class numbers and weights, of which one at a time is made; some are empty."""

    def __init__(self, X, codes, weights, size=37):
        self.X, self.codes, self.weights, self.size = X, codes, weights, size
        self.n_rows, self.n_features = X.shape
        self.n_passes = 0

    def blocks(self):
        self.n_passes += 1
        for start in [*range(0, self.n_rows, self.size), self.n_rows]:
            rows = slice(start, start + self.size)
            yield RowBlock(self.X[rows], self.codes[rows], self.weights[rows])


def same(one, other, rows):
    """Whether two models are the same up to the order of sums."""
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    assert one.points_ == pytest.approx(other.points_, abs=1e-4)
    assert (one.certify(rows) == other.certify(rows)).mean() > 0.99
    for mine, theirs in zip(one.columns_, other.columns_, strict=True):
        assert mine.labels() == theirs.labels()
        assert mine.rare == theirs.rare
        assert mine.shares == pytest.approx(theirs.shares)


@pytest.mark.parametrize("keep_encoded", [True, False])
@pytest.mark.parametrize("max_broken", [0, 2])
def test_blocks_of_tables(keep_encoded, max_broken):
    frame, y = mixed()
    weights = 1.0 + np.arange(len(y)) % 3
    settings = {"max_broken": max_broken, "class_weight": "balanced", "C": 0.03}
    whole = RobustAdditiveClassifier(**settings).fit(frame, y, weights)
    source = Blocks(frame, (y == "yes").astype(np.int32), weights)
    names = list(frame.columns)
    model = RobustAdditiveClassifier(**settings)
    model.fit_rows(source, ["no", "yes"], feature_names=names, keep_encoded=keep_encoded)
    assert source.n_passes > 10
    same(model, whole, frame)
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict(frame[names[::-1]]), model.predict(frame))


def test_blocks_of_several_classes():
    X, y = load_iris(return_X_y=True)
    whole = RobustAdditiveClassifier().fit(X, y)
    model = RobustAdditiveClassifier().fit_rows(Blocks(X, y.astype(np.int32), np.ones(len(y))), range(3))
    same(model, whole, X)
    assert not hasattr(model, "feature_names_in_")


def test_levels_of_a_sample(monkeypatch):
    """The gap is that of all rows, and the missing level that of the sample."""
    monkeypatch.setattr("exclusivity.additive.classifier._SAMPLE_ROWS", 150)
    X, y = load_breast_cancer(return_X_y=True)
    X[1::7, 0] = np.nan
    model = RobustAdditiveClassifier().fit_rows(Blocks(X, y.astype(np.int32), np.ones(len(y)), 100), [0, 1])
    assert model.converged_.all()
    assert model.score(X, y) > 0.95
    assert model.columns_[3].n_rows == len(y)
    assert model.columns_[3].shares.sum() == pytest.approx(1)
    whole = RobustAdditiveClassifier().fit(X, y)
    assert np.abs(model.columns_[3].knots - whole.columns_[3].knots).max() > 1e-6


def test_mistakes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="one class only"):
        RobustAdditiveClassifier().fit_rows(Blocks(X, 0 * y.astype(np.int32), np.ones(len(y))), [7])
    with pytest.raises(ValueError, match="codes of a block must be integers from 0 to 1"):
        RobustAdditiveClassifier().fit_rows(Blocks(X, y.astype(np.int32), np.ones(len(y))), [0, 1])
    with pytest.raises(ValueError, match="All rows of the class 3 have weight 0"):
        RobustAdditiveClassifier().fit_rows(Blocks(X, y.astype(np.int32), np.ones(len(y))), range(4))


@pytest.mark.parametrize("memory", [True, False])
def test_dask_dataframe(memory, monkeypatch):
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")
    from exclusivity.dask import RobustAdditiveClassifier as OnDask, _rows

    if not memory:
        monkeypatch.setattr(_rows, "_MEMORY_SHARE", 0.0)
    frame, y = mixed()
    whole = RobustAdditiveClassifier(2).fit(frame, y)
    X, labels = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        model = OnDask(2).fit(X, labels)
        assert isinstance(model.to_local(), RobustAdditiveClassifier)
        assert type(model.to_local()) is RobustAdditiveClassifier
        same(model.to_local(), whole, frame)
        assert np.array_equal(model.predict(X).compute(), model.to_local().predict(frame))
        assert np.array_equal(model.certify(X).compute(), model.to_local().certify(frame))
        assert model.score(X, labels) == model.to_local().score(frame, y)
        with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
            model.predict_proba(X)


def test_dask_array():
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    from exclusivity.dask import RobustAdditiveClassifier as OnDask

    X, y = load_breast_cancer(return_X_y=True)
    X[::9, 2] = np.nan
    weights = np.arange(len(y)) % 3
    parts = [da.from_array(each, chunks=(150, -1)[: each.ndim]) for each in (X, y, weights)]
    with dask.config.set(scheduler="synchronous"):
        model = OnDask(loss="logistic").fit(*parts)
        found = model.predict_proba(parts[0]).compute()
        with pytest.raises(ValueError, match="RobustAdditiveClassifier is expecting 30 features"):
            model.predict(parts[0][:, :3])
    whole = RobustAdditiveClassifier(loss="logistic").fit(X, y, weights)
    same(model.to_local(), whole, X)
    assert found == pytest.approx(whole.predict_proba(X), abs=1e-3)
