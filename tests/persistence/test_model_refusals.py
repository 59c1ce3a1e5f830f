"""Models that cannot be stored: an error that names the part, and no file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from exclusivity import ERMClassifier
from exclusivity.io import load_model, save_model
from persistence.model_cases import X2, Y2


@pytest.fixture(scope="module")
def fitted():
    return ERMClassifier(2, exclusivity=np.inf, random_state=0).fit(X2, Y2)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("solver_options", {"partition": nested(20)}, "solver_options.* is nested too deeply"),
        ("solver_options", {"partition": "\ud800"}, "lone surrogates"),
        ("feature_groups", np.zeros((1, 1, 1, 4)), "has 4 dimensions and .* holds up to 3"),
        ("feature_groups", np.array(list("abcd"), dtype="S1"), r"elements of type \|S1"),
        ("feature_groups", np.array(["a", 2.5, "c", "d"], dtype=object), "2.5|float"),
    ],
)
def test_parameters(fitted, tmp_path, parameter, value, words):
    fitted_copy = load_copy(fitted, tmp_path).set_params(**{parameter: value})
    with pytest.raises((TypeError, ValueError), match=words):
        save_model(fitted_copy, tmp_path / "refused.erm")
    assert not (tmp_path / "refused.erm").exists()


def load_copy(model, folder):
    """A fitted copy whose parameters may be changed."""
    save_model(model, folder / "model.erm")
    return load_model(folder / "model.erm")


@pytest.mark.parametrize(
    ("scaler", "change"),
    [
        (StandardScaler(), {"with_mean": "yes"}),
        (MinMaxScaler(), {"feature_range": (0, np.inf)}),
        (MinMaxScaler(), {"feature_range": (0, 1, 2)}),
    ],
    ids=str,
)
def test_scalers_with_parameters_that_nobody_checked(fitted, tmp_path, scaler, change):
    pipeline = make_pipeline(clone(scaler), ERMClassifier(2)).fit(X2, Y2)
    pipeline[0].set_params(**change)
    with pytest.raises(ValueError, match=rf"{type(scaler).__name__}\.params\.{next(iter(change))}: expected"):
        save_model(pipeline, tmp_path / "refused.erm")
    assert not (tmp_path / "refused.erm").exists()
