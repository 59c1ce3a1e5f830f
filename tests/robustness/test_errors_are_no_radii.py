"""An error anywhere behind ``certify`` comes out as an error: no radius is ever made of it."""

from __future__ import annotations

import gc
import inspect
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify

N_ROWS, N_FEATURES = 90, 6
VOTERS = ERMClassifier(3, exclusivity=np.inf, voting="hard", random_state=0)


class Injected(AttributeError, TypeError, ValueError, KeyError, RuntimeError):
    """What any handler but a bare one could take for the error that it expects."""


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    y = np.where(X.sum(axis=1) + rng.normal(size=N_ROWS) > 0, "yes", "no")
    return X, y


def behind(*steps):
    return make_pipeline(*steps, clone(VOTERS))


ENSEMBLES = {
    "members": VOTERS,
    "several classes": clone(VOTERS).set_params(multi_class="ovo"),
    "groups": clone(VOTERS).set_params(feature_groups=[0, 0, 1, 2, 3, 4]),
    "path": ERMClassifierCV(3, Cs=[0.1, 1.0], cv=2, exclusivity=np.inf, voting="hard", random_state=0),
    "search": GridSearchCV(VOTERS, {"C": [1.0, 2.0]}, cv=2),
    "partition": FeaturePartitionClassifier(LinearSVC(), 3, random_state=0),
    "bagging": BaggingClassifier(LinearSVC(), 3, max_features=2, random_state=0),
}
PIPELINES = {
    "scaler": behind(StandardScaler()),
    "nothing": behind("passthrough"),
    "imputer and selector": behind(SimpleImputer(add_indicator=True), VarianceThreshold()),
    "bins": behind(KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf")),
    "function": behind(FunctionTransformer(np.tanh)),
    "columns": behind(
        make_column_transformer(
            (StandardScaler(), [0, 1]),
            (OneHotEncoder(handle_unknown="ignore"), [2]),
            (Pipeline([("scale", StandardScaler())]), slice(3, 5)),
            remainder="passthrough",
        )
    ),
    "union": behind(FeatureUnion([("scaled", StandardScaler()), ("curved", FunctionTransformer(np.tanh))])),
}


@pytest.fixture
def fitted(request):
    """A model, two rows and their radii."""
    X, y = table()
    if request.param == "several classes":
        y = np.where(X[:, 0] > 1, "perhaps", y)
    model = clone((ENSEMBLES | PIPELINES)[request.param]).fit(X, y)
    rows = X[:2]
    certify(model, rows)  # whatever is made once is made now
    return model, rows, certify(model, rows)


class Saboteur:
    """A profile function that notes where calls come from, and raises at one of these places.

    A place is a line of code and what it calls, written in Python or in C. Generators are left alone: they
    are also entered to be closed, and what is raised then is lost, as Python says it will be. So is what a
    garbage collection calls, on whatever line it happens to run: there is none while this watches.
    """

    def __init__(self, target=None, callers=""):
        self.target, self.callers, self.places, self.error = target, callers, set(), None

    def __call__(self, frame, event, argument):
        if event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR:
            caller, callee = frame.f_back, frame.f_code.co_qualname
        elif event == "c_call":
            caller, callee = frame, argument.__qualname__
        else:
            return
        if not caller.f_globals.get("__name__", "").startswith(self.callers):
            return
        place = caller.f_code.co_filename, caller.f_lineno, callee
        self.places.add(place)
        if place == self.target and self.error is None:
            self.error = Injected(f"at {place}")
            raise self.error

    def watch(self, model, rows):
        """The radii, if there are any."""
        gc.disable()
        sys.setprofile(self)
        try:
            return certify(model, rows)
        finally:
            sys.setprofile(None)
            gc.enable()


def chain(error):
    """An error and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__


def assert_heard(model, rows, callers):
    """Whatever these modules call may fail, and the caller of ``certify`` learns of it."""
    watcher = Saboteur(callers=callers)
    watcher.watch(model, rows)
    assert len(watcher.places) > 5
    for place in sorted(watcher.places):
        saboteur = Saboteur(place, callers)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            saboteur.watch(model, rows)
        assert saboteur.error in chain(caught.value), place


@pytest.mark.parametrize("fitted", ENSEMBLES, indirect=True)
def test_an_error_in_what_votes_are_counted_with_is_heard(fitted):
    assert_heard(*fitted[:2], "exclusivity.")


@pytest.mark.parametrize("fitted", PIPELINES, indirect=True)
def test_an_error_in_what_follows_columns_through_a_pipeline_is_heard(fitted):
    assert_heard(*fitted[:2], "exclusivity.robustness.")


@pytest.mark.parametrize("fitted", ["scaler", "bagging"], indirect=True)
def test_an_error_deep_in_a_library_is_heard_or_does_no_harm(fitted):
    """NumPy and scikit-learn may try something and then another thing: the radii are the same then."""
    model, rows, expected = fitted
    watcher, n_heard = Saboteur(), 0
    watcher.watch(model, rows)
    for place in sorted(watcher.places):
        saboteur = Saboteur(place)
        try:
            radii = saboteur.watch(model, rows)
        except Exception:
            n_heard += 1
        else:
            np.testing.assert_array_equal(radii, expected, err_msg=str(place))
    assert n_heard > len(watcher.places) / 2
