"""A million features, and never more memory than twice the file."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.classifier._path import SearchState
from exclusivity.io import ModelFormatError, _model_kinds, load_model, save_model
from exclusivity.io._model_values import MAX_PARTS
from exclusivity.io.models import MAX_HEADER
from persistence.model_cases import X2, Y2, assert_same_model, joined, same, split

MILLION = 10**6
N_NAMES = 200_000
MARGIN = 16 << 20
"""What a header of the largest size may take beside the arrays."""


def wide_model(dtype, n_members=2, n_stored=1, n_features=MILLION, **changes):
    """A classifier of a million features, without the fit."""
    rng = np.random.default_rng(0)
    small = ERMClassifier(n_members).fit(X2, Y2)
    shape = (1, n_stored, n_features)
    weights = rng.standard_normal(shape).astype(dtype)
    ensemble = Ensemble(weights, np.ones((1, n_stored), dtype=dtype), n_members)
    state = dataclasses.replace(
        FittedState.of(small),
        ensemble=ensemble,
        n_features=n_features,
        groups=np.arange(n_features),
        **changes,
    )
    return state.restore(ERMClassifier(n_members))


def peak_of(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


NAMES = {
    "tiny": lambda: np.array([chr(0x4E00 + i % 20_000) for i in range(N_NAMES)], dtype=object),
    "usual": lambda: np.array([f"feature_{i}" for i in range(N_NAMES)], dtype=object),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_million_features(tmp_path, dtype):
    model = wide_model(dtype)
    path = tmp_path / "wide.erm"
    _, saving = peak_of(lambda: save_model(model, path))
    twin, loading = peak_of(lambda: load_model(path))
    size = path.stat().st_size
    assert loading <= 2 * size + MARGIN
    assert saving <= MARGIN
    X = np.random.default_rng(1).standard_normal((2, MILLION)).astype(dtype)
    assert_same_model(model, twin, X)


def test_members_that_differ(tmp_path):
    model = wide_model(np.float64, 4, 4)
    path = tmp_path / "wide.erm"
    _, saving = peak_of(lambda: save_model(model, path))
    twin, loading = peak_of(lambda: load_model(path))
    assert saving <= 8 << 20
    assert loading <= 1.3 * path.stat().st_size
    same(model.components_, twin.components_)


@pytest.mark.parametrize("kind", NAMES)
def test_many_names(tmp_path, kind):
    model = wide_model(np.float32, n_features=N_NAMES, feature_names=NAMES[kind]())
    path = tmp_path / "wide.erm"
    save_model(model, path)
    twin, loading = peak_of(lambda: load_model(path))
    assert loading <= 2 * path.stat().st_size
    same(model.feature_names_in_, twin.feature_names_in_)


def test_pipeline(tmp_path):
    model = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(X2, Y2)
    scaler, n_features = model[0], MILLION
    for name in ("mean_", "var_", "scale_"):
        setattr(scaler, name, np.linspace(1, 2, n_features))
    scaler.n_features_in_ = n_features
    model.steps[1] = ("erm", wide_model(np.float64))
    path = tmp_path / "wide.erm"
    save_model(model, path)
    twin, loading = peak_of(lambda: load_model(path))
    assert loading <= 1.5 * path.stat().st_size
    same(model.predict(np.ones((1, n_features))), twin.predict(np.ones((1, n_features))))


@pytest.mark.parametrize("filler", [b"[],", b"{},", b"1.5,", b'"",', b'"a",', b"[[]],"])
def test_the_worst_header(tmp_path, filler):
    """JSON takes many times its size when parsed: that is why headers are short."""
    save_model(ERMClassifier(2).fit(X2, Y2), tmp_path / "some.erm")
    header, arrays = split((tmp_path / "some.erm").read_bytes())
    text = b'{"arrays":[' + filler * ((MAX_HEADER - 100) // len(filler)) + b"0]}"
    (tmp_path / "some.erm").write_bytes(joined(text, arrays))

    def refused():
        with pytest.raises(ModelFormatError):
            load_model(tmp_path / "some.erm")

    _, peak = peak_of(refused)
    assert header
    assert peak <= MARGIN


def test_promised_arrays_take_no_memory(tmp_path):
    save_model(ERMClassifier(2).fit(X2, Y2), tmp_path / "some.erm")
    header, arrays = split((tmp_path / "some.erm").read_bytes())
    header["arrays"] = [{"type": "f8", "shape": [len(arrays), len(arrays), len(arrays)]}]
    (tmp_path / "some.erm").write_bytes(joined(header, arrays))

    def refused():
        with pytest.raises(ModelFormatError, match="its arrays need a file of"):
            load_model(tmp_path / "some.erm")

    assert peak_of(refused)[1] < 1 << 20


def test_many_problems(tmp_path):
    """Objects for each of them would take ten times what the file has."""
    n_classes = 400
    n_problems = n_classes * (n_classes - 1) // 2
    small = ERMClassifier(2).fit(X2, Y2)
    state = dataclasses.replace(
        FittedState.of(small),
        classes=np.arange(n_classes),
        ensemble=Ensemble(
            np.ones((n_problems, 1, 1), dtype=np.float32), np.ones((n_problems, 1), dtype=np.float32), 1
        ),
        multi_class="ovo",
        **{name: np.ones(n_problems) for name in ("objective", "dual_gap")},
        converged=np.ones(n_problems, dtype=bool),
        n_iter=np.ones(n_problems, dtype=np.int64),
        n_features=1,
        groups=np.zeros(1, dtype=np.intp),
    )
    path = tmp_path / "pairs.erm"
    save_model(state.restore(ERMClassifier(1, multi_class="ovo")), path)
    twin, loading = peak_of(lambda: load_model(path))
    assert loading <= 2 * path.stat().st_size + (1 << 20)
    assert len(twin.dual_gap_) == n_problems


@pytest.mark.parametrize("shape", [(MAX_PARTS, 2), (2, MAX_PARTS)])
def test_large_searches(tmp_path, shape):
    """Every fold and every C has an entry in cv_results_, which is far larger than its scores."""
    model = ERMClassifierCV(2, Cs=[1.0, 2.0], cv=2).fit(X2, Y2)

    def searched(n_folds, n_values):
        scores = np.random.default_rng(0).integers(0, 9, (n_folds, n_values)) / 8
        ones = np.ones(n_values)
        return SearchState(np.arange(1.0, n_values + 1), scores, ones, ones).restore(model)

    save_model(searched(*shape), tmp_path / "most.erm")
    twin, loading = peak_of(lambda: load_model(tmp_path / "most.erm"))
    assert loading <= 2 * (tmp_path / "most.erm").stat().st_size + MARGIN
    assert twin.scores_.shape == shape
    means = twin.cv_results_["mean_test_score"][:50]
    ranks = [1 + int((twin.cv_results_["mean_test_score"] > mean).sum()) for mean in means]
    assert twin.cv_results_["rank_test_score"][:50].tolist() == ranks
    more = [size + (size == MAX_PARTS) for size in shape]
    with pytest.raises(ValueError, match="expected 1 to 10000 folds and values of C"):
        save_model(searched(*more), tmp_path / "more.erm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_model_kinds, "MAX_PARTS", 10**6)
        save_model(model, tmp_path / "more.erm")
    with pytest.raises(ModelFormatError, match="folds and values"):
        load_model(tmp_path / "more.erm")


@pytest.mark.filterwarnings("ignore:The duality gap")
def test_robust_models_of_many_classes_and_columns(tmp_path):
    """Sums of all duels at once took 1.5 times the points beside them."""
    n_classes, n_columns = 50, 2000
    X = np.tile(np.arange(2.0)[:, None], (1, n_columns))
    model = RobustAdditiveClassifier(threats="increase", max_iter=1, tol=0.99).fit(X, [0, 1])
    n_duels = n_classes * (n_classes - 1) // 2
    model.classes_ = np.arange(n_classes)
    for name in ("points_", "intercept_", "objective_", "dual_gap_", "converged_", "n_iter_"):
        setattr(model, name, np.repeat(getattr(model, name), n_duels, axis=0))
    save_model(model, tmp_path / "robust.erm")
    size = (tmp_path / "robust.erm").stat().st_size
    assert size > 2 * MARGIN
    assert peak_of(lambda: load_model(tmp_path / "robust.erm"))[1] <= 1.5 * size
