"""Models of all kinds, and what makes two of them the same."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from classifier.erm_cases import DIVERSE, binary_data, class_data
from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.io.models import DIGEST_SIZE, MAGIC, PREFIX, VERSION, dump_json

X2, Y2 = binary_data(40, 4)
X3, Y3 = class_data(3, 48, 4)


def exclusive(exclusivity=np.inf, **parameters):
    """Members that compete for features."""
    return ERMClassifier(exclusivity=exclusivity, random_state=0, **parameters)


def surplus(**parameters):
    """More members than there are features or groups: some abstain."""
    with pytest.warns(UserWarning, match="compete for"):
        return exclusive(n_estimators=6, **parameters).fit(X2, Y2)


LABELS = {
    "int64": np.array([-5, 7, 2**40]),
    "int8": np.array([-5, 7, 100], dtype=np.int8),
    "uint64": np.array([0, 1, 2**63], dtype=np.uint64),
    "float64": np.array([-1.0, 0.0, 2.0]),
    "float32": np.array([-1.0, 0.0, 2.0], dtype=np.float32),
    "str": np.array(["a", "größer", "zz \0 z"]),
    "object": np.array(["a", "größer" * 9, "zz"], dtype=object),
}

SCALERS = {
    "standard": StandardScaler(),
    "standard, no mean": StandardScaler(with_mean=False),
    "standard, neither": StandardScaler(with_mean=False, with_std=False),
    "minmax": MinMaxScaler(),
    "minmax, clipped": MinMaxScaler((-3, 2.5), clip=True),
    "maxabs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust, no centre": RobustScaler(with_centering=False, quantile_range=(10, 80.0), unit_variance=True),
    "robust, no scale": RobustScaler(with_scaling=False),
}

MODELS = {
    "binary": lambda: ERMClassifier(3).fit(X2, Y2),
    "binary, hard": lambda: ERMClassifier(5, voting="hard", **DIVERSE).fit(X2, Y2),
    "binary, bool": lambda: ERMClassifier(3, p=1).fit(X2, Y2 == 1),
    "one member": lambda: ERMClassifier(1, sparsity=0.5, fit_intercept=False).fit(X2, Y2),
    "equal, hard": lambda: ERMClassifier(4, voting="hard").fit(X3, Y3),
    "ovr": lambda: ERMClassifier(3, **DIVERSE).fit(X3, Y3),
    "ovr, hard": lambda: ERMClassifier(4, voting="hard", **DIVERSE).fit(X3, Y3),
    "ovo": lambda: ERMClassifier(3, multi_class="ovo", **DIVERSE).fit(X3, Y3),
    "ovo, hard": lambda: ERMClassifier(4, multi_class="ovo", voting="hard", **DIVERSE).fit(X3, Y3),
    "ovr, runoff": lambda: ERMClassifier(4, voting="runoff", **DIVERSE).fit(X3, Y3),
    "ovo, runoff": lambda: ERMClassifier(4, multi_class="ovo", voting="runoff", **DIVERSE).fit(X3, Y3),
    "equal, runoff": lambda: ERMClassifier(4, voting="runoff").fit(X3, Y3),
    "float32": lambda: ERMClassifier(3, exclusivity=0.5).fit(X3.astype(np.float32), Y3),
    "float32, hard": lambda: ERMClassifier(3, voting="hard", **DIVERSE).fit(X3.astype(np.float32), Y3),
    "float32, ovo": lambda: exclusive(n_estimators=4, exclusivity=10.0, multi_class="ovo").fit(
        X3.astype(np.float32), Y3
    ),
    "exclusive": lambda: exclusive(n_estimators=3).fit(X3, Y3),
    "exclusive, hard": lambda: exclusive(n_estimators=2, voting="hard", multi_class="ovo").fit(X3, Y3),
    "exclusive, shared": lambda: exclusive(n_estimators=2, voting="hard", exclusivity=3.0).fit(X3, Y3),
    "groups": lambda: exclusive(n_estimators=2, voting="hard", feature_groups=list("abca")).fit(X2, Y2),
    "surplus": lambda: surplus(voting="hard", feature_groups=np.array([1, 1, 0, 1])),
    "surplus, soft": surplus,
    "search": lambda: ERMClassifierCV(3, Cs=[0.1, 1, 10], cv=3).fit(X3, Y3),
    "search, hard": lambda: make_pipeline(
        StandardScaler(),
        ERMClassifierCV(2, Cs=3, scoring="balanced_accuracy", voting="hard", multi_class="ovo"),
    ).fit(X3, Y3),
    "pipeline": lambda: make_pipeline(StandardScaler(), ERMClassifier(3)).fit(X3, Y3),
    "long pipeline": lambda: Pipeline(
        [("a", MinMaxScaler()), ("b", "passthrough"), ("c", RobustScaler()), ("d", ERMClassifier(2))]
    ).fit(X2, Y2),
}


def last(model):
    return model[-1] if isinstance(model, Pipeline) else model


def rows_for(model, n_rows=25):
    rng = np.random.default_rng(3)
    return rng.standard_normal((n_rows, model.n_features_in_)) * 2


def same(first, second):
    """Bit by bit, types included; NaN is NaN."""
    first, second = np.asarray(first), np.asarray(second)
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    if first.dtype == object:
        assert first.tolist() == second.tolist()
    else:
        assert first.tobytes() == second.tobytes()


def assert_same_model(first, second, X):
    assert repr(first) == repr(second)
    for one, other in ((first, second), (last(first), last(second))):
        assert type(one) is type(other)
    same(first.predict(X), second.predict(X))
    same(first.decision_function(X), second.decision_function(X))
    one, other = last(first), last(second)
    for name in ("classes_", "components_", "component_intercepts_", "objective_", "dual_gap_"):
        same(getattr(one, name), getattr(other, name))
    same(one.converged_, other.converged_)
    same(one.n_iter_, other.n_iter_)
    same(one.groups_, other.groups_)
    assert hasattr(one, "partition_") == hasattr(other, "partition_")
    if hasattr(one, "partition_"):
        same(one.partition_, other.partition_)


def split(data):
    """The header as an object, and the bytes of the arrays."""
    length = PREFIX.unpack_from(data)[2]
    header = json.loads(data[PREFIX.size : PREFIX.size + length])
    return header, data[PREFIX.size + length : -DIGEST_SIZE]


def joined(header, arrays):
    """A file whose lengths and checksum fit, around an object or a text as its header."""
    text = header if isinstance(header, bytes) else dump_json(header)
    size = PREFIX.size + len(text) + len(arrays) + DIGEST_SIZE
    data = PREFIX.pack(MAGIC, VERSION, len(text), size) + text + arrays
    return data + hashlib.sha256(data).digest()
