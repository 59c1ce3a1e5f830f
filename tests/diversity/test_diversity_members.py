"""Members of every kind of ensemble: their labels and their weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.diversity import member_predictions, member_weights

NAMES = np.array(["ant", "bee", "cicada", "dragonfly"])


def data(n_classes=3, seed=0):
    X, codes = make_classification(
        90,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.6,
        random_state=seed,
    )
    return X, NAMES[codes]


X, NAMED = data()
TWO_X, TWO_NAMED = data(2)
# Labels that are numbers but not 0, 1, 2: taking codes for labels would go unnoticed with those.
NUMBERED = np.searchsorted(NAMES, NAMED) * 10 + 5
LABELS = {"names": NAMED, "numbers": NUMBERED, "objects": NAMED.astype(object)}
labels = pytest.mark.parametrize("y", list(LABELS.values()), ids=list(LABELS))


def majority(predictions):
    """The label most members give, or None where several have as many votes."""
    chosen = []
    for row in predictions:
        names, counts = np.unique(row.astype(str), return_counts=True)
        is_clear = (counts == counts.max()).sum() == 1
        chosen.append(names[counts.argmax()] if is_clear else None)
    return chosen


def agrees_with_majority(ensemble, rows):
    predicted = [str(label) for label in ensemble.predict(rows)]
    pairs = list(zip(predicted, majority(member_predictions(ensemble, rows)), strict=True))
    clear = [(label, chosen) for label, chosen in pairs if chosen is not None]
    assert len(clear) > len(pairs) / 2
    return all(label == chosen for label, chosen in clear)


# --- scikit-learn's ensembles -------------------------------------------------------------------------


@labels
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_trees_of_a_forest_name_their_classes(kind, y):
    forest = kind(7, max_depth=3, random_state=0).fit(X, y)
    predictions = member_predictions(forest, X)
    assert predictions.shape == (90, 7)
    for k, tree in enumerate(forest.estimators_):
        expected = forest.classes_[tree.predict_proba(X).argmax(axis=1)]
        assert predictions[:, k].tolist() == expected.tolist()


@labels
def test_members_of_bagging_see_their_own_features(y):
    bagging = BaggingClassifier(
        RidgeClassifier(), n_estimators=7, max_features=3, bootstrap_features=True, random_state=0
    ).fit(X, y)
    predictions = member_predictions(bagging, X)
    for k, (member, columns) in enumerate(
        zip(bagging.estimators_, bagging.estimators_features_, strict=True)
    ):
        expected = [bagging.classes_[code] for code in member.predict(X[:, columns])]
        assert predictions[:, k].tolist() == expected
    assert agrees_with_majority(bagging, X)


def test_a_member_of_bagging_that_never_saw_a_class():
    y = np.where(np.arange(90) < 2, "rare", NAMED)
    # Nearest neighbours take no sample weights, so bagging trains them on the drawn rows alone.
    bagging = BaggingClassifier(KNeighborsClassifier(1), n_estimators=8, max_samples=20, random_state=0)
    bagging.fit(X, y)
    unaware = [k for k, member in enumerate(bagging.estimators_) if len(member.classes_) < 4]
    predictions = member_predictions(bagging, X)
    assert unaware
    for k in unaware:
        drawn = bagging.estimators_samples_[k]
        assert set(predictions[:, k]) <= set(y[drawn])
        assert predictions[drawn, k].tolist() == y[drawn].tolist()


@labels
def test_members_of_adaboost(y):
    boosted = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0).fit(
        X, y
    )
    predictions = member_predictions(boosted, X)
    for k, member in enumerate(boosted.estimators_):
        assert predictions[:, k].tolist() == member.predict(X).tolist()
    assert set(predictions.flat) <= set(boosted.classes_)


@labels
def test_members_of_a_vote(y):
    members = [
        ("nb", GaussianNB()),
        ("lr", LogisticRegression()),
        ("no", "drop"),
        ("tree", DecisionTreeClassifier()),
    ]
    voting = VotingClassifier(members).fit(X, y)
    assert member_predictions(voting, X).shape == (90, 3)
    assert member_predictions(voting, X)[:, 2].tolist() == y.tolist()
    assert agrees_with_majority(voting, X)


@labels
def test_members_of_a_stack(y):
    members = [("tree", DecisionTreeClassifier()), ("lr", LogisticRegression())]
    stack = StackingClassifier(members, final_estimator=GaussianNB(), cv=3).fit(X, y)
    expected = LogisticRegression().fit(X, y).predict(X)
    predictions = member_predictions(stack, X)
    assert predictions[:, 0].tolist() == y.tolist()
    assert predictions[:, 1].tolist() == expected.tolist()


def test_members_of_a_stack_that_came_fitted_know_the_labels():
    members = [("tree", DecisionTreeClassifier().fit(X, NAMED)), ("lr", LogisticRegression().fit(X, NAMED))]
    stack = StackingClassifier(members, cv="prefit").fit(X, NAMED)
    assert member_predictions(stack, X)[:, 0].tolist() == NAMED.tolist()


def test_a_list_of_classifiers():
    members = [GaussianNB().fit(X, NAMED), make_pipeline(StandardScaler(), SVC()).fit(X, NAMED)]
    for given in (members, tuple(members)):
        predictions = member_predictions(given, X)
        assert predictions[:, 0].tolist() == members[0].predict(X).tolist()
        assert predictions[:, 1].tolist() == members[1].predict(X).tolist()


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(3, random_state=0),
        BaggingClassifier(n_estimators=3, max_features=2, random_state=0),
        AdaBoostClassifier(n_estimators=3, random_state=0),
        VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())]),
    ],
    ids=lambda ensemble: type(ensemble).__name__,
)
def test_data_frames_and_sparse_rows(ensemble):
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)])
    named = ensemble.fit(frame, pd.Series(NAMED))
    expected = member_predictions(named, frame)
    assert expected.shape[0] == 90
    if not isinstance(ensemble, VotingClassifier):
        plain = ensemble.fit(X, NAMED)
        np.testing.assert_array_equal(member_predictions(plain, X), expected)
        np.testing.assert_array_equal(member_predictions(plain, sparse.csr_array(X)), expected)


# --- our classifier -----------------------------------------------------------------------------------


class Fixed(ERMClassifier):
    """A fitted ERM with members of our choice."""

    def __init__(self, components=None, intercepts=None, classes=None, multi_class="ovr", voting="soft"):
        super().__init__(multi_class=multi_class, voting=voting)
        self.components, self.intercepts, self.classes = components, intercepts, classes

    def fit(self, X, y):
        from exclusivity.classifier._ensemble import Ensemble

        self.n_features_in_, self.classes_ = X.shape[1], self.classes
        self.multi_class_ = self.multi_class
        self._ensemble = Ensemble(self.components, self.intercepts, self.components.shape[1])
        return self


def random_erm(n_classes, n_problems, multi_class, voting="hard", n_members=7):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(n_problems, 1, 6)) + rng.normal(size=(n_problems, n_members, 6))
    intercepts = rng.normal(size=(n_problems, n_members))
    return Fixed(weights, intercepts, NAMES[:n_classes], multi_class, voting).fit(X, NAMED)


@pytest.mark.parametrize(
    ("n_classes", "n_problems", "multi_class"),
    [(2, 1, "ovr"), (3, 3, "ovr"), (3, 3, "ovo"), (4, 4, "ovr"), (4, 6, "ovo")],
)
def test_members_of_an_erm_choose_as_one_member_erms_do(n_classes, n_problems, multi_class):
    erm = random_erm(n_classes, n_problems, multi_class)
    predictions = member_predictions(erm, X)
    assert predictions.shape == (90, 7)
    assert len({tuple(column) for column in predictions.T}) == 7
    for k in range(7):
        weights, intercepts = erm.components_[:, k : k + 1], erm.component_intercepts_[:, k : k + 1]
        alone = Fixed(weights, intercepts, erm.classes_, multi_class).fit(X, NAMED)
        assert predictions[:, k].tolist() == alone.predict(X).tolist()
    assert agrees_with_majority(erm, X)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@labels
def test_equal_members_of_a_fitted_erm_predict_what_the_ensemble_predicts(y, multi_class):
    erm = ERMClassifier(3, multi_class=multi_class).fit(X, y)
    predictions = member_predictions(erm, X)
    erm.set_params(multi_class="ovr" if multi_class == "ovo" else "ovo")  # means nothing until the next fit
    for column in predictions.T:
        assert column.tolist() == erm.predict(X).tolist()
    np.testing.assert_array_equal(member_predictions(erm, X), predictions)


def test_an_erm_of_two_classes_and_in_a_pipeline():
    erm = ERMClassifier(4).fit(TWO_X, TWO_NAMED)
    piped = make_pipeline(StandardScaler(), ERMClassifier(4)).fit(TWO_X, TWO_NAMED)
    for model in (erm, piped, make_pipeline(erm)):
        predictions = member_predictions(model, TWO_X)
        assert predictions.shape == (90, 4)
        assert predictions[:, 1].tolist() == model.predict(TWO_X).tolist()


class Lookalike:
    """Has what an ERM offers and nothing else; its problems are one-vs-rest."""

    classes_ = NAMES[:3]
    components_ = np.random.default_rng(0).normal(size=(3, 2, 6))

    def component_decision_function(self, X):
        return np.einsum("sf,pmf->spm", X, self.components_)


def test_other_classifiers_with_components_are_welcome():
    model = Lookalike()
    expected = [[NAMES[np.argmax(model.components_[:, k] @ row)] for k in range(2)] for row in X]
    assert member_predictions(model, X).tolist() == expected
    assert member_weights(model).shape == (2, 18)


# --- weights ------------------------------------------------------------------------------------------


def test_weights_of_an_erm_put_its_problems_one_after_the_other():
    erm = random_erm(4, 6, "ovo")
    weights = member_weights(erm)
    assert weights.shape == (7, 36)
    for k in range(7):
        np.testing.assert_array_equal(weights[k], np.concatenate([problem[k] for problem in erm.components_]))


def test_weights_of_a_pipeline_are_those_of_its_last_step():
    piped = make_pipeline(SelectKBest(k=2), ERMClassifier(3)).fit(TWO_X, TWO_NAMED)
    np.testing.assert_array_equal(member_weights(piped), piped[-1].components_[0])


def test_weights_of_lists_of_linear_models():
    models = [LogisticRegression(C=C).fit(X, NAMED) for C in (0.1, 1)]
    expected = np.stack([model.coef_.ravel() for model in models])
    np.testing.assert_array_equal(member_weights(models), expected)
    np.testing.assert_array_equal(member_weights([model.sparsify() for model in models]), expected)
    flat = [Ridge(alpha).fit(TWO_X, np.arange(90)) for alpha in (1, 2)]
    assert member_weights(flat).shape == (2, 6)


def test_weights_of_bagged_linear_models_belong_to_the_features_they_saw():
    bagging = BaggingClassifier(
        LogisticRegression(), n_estimators=5, max_features=4, bootstrap_features=True, random_state=0
    ).fit(TWO_X, TWO_NAMED)
    weights = member_weights(bagging)
    assert weights.shape == (5, 6)
    for row, member, columns in zip(weights, bagging.estimators_, bagging.estimators_features_, strict=True):
        assert len(set(columns)) < 6
        np.testing.assert_array_equal(row[np.setdiff1d(np.arange(6), columns)], 0)
        scores = member.decision_function(TWO_X[:, columns])
        np.testing.assert_allclose(TWO_X @ row + member.intercept_, scores, atol=1e-12)


def test_weights_of_linear_models_in_a_vote():
    voting = VotingClassifier([("a", LogisticRegression()), ("b", RidgeClassifier())]).fit(X, NAMED)
    assert member_weights(voting).shape == (2, 18)


# --- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [lambda model: member_predictions(model, X), member_weights])
@pytest.mark.parametrize("model", [LogisticRegression(), GradientBoostingClassifier(), "forest", None, X])
def test_other_things_are_refused_with_the_list_of_what_is_not(read, model):
    with pytest.raises(TypeError, match=r"No members are known of .*BaggingClassifier.*list of fitted"):
        read(model)


@pytest.mark.parametrize("read", [lambda model: member_predictions(model, X), member_weights])
@pytest.mark.parametrize("model", [ERMClassifier(), RandomForestClassifier(), VotingClassifier([])])
def test_ensembles_must_be_fitted(read, model):
    with pytest.raises(NotFittedError):
        read(model)


@pytest.mark.parametrize(
    "member", ["not a model", StandardScaler().fit(X), LinearRegression().fit(X, X[:, 0])]
)
def test_members_must_be_classifiers(member):
    with pytest.raises(TypeError, match="must be a fitted classifier"):
        member_predictions([GaussianNB().fit(X, NAMED), member], X)


def test_lists_must_not_be_empty():
    with pytest.raises(ValueError, match="empty"):
        member_predictions([], X)


def test_members_must_predict_labels_of_one_kind():
    with pytest.raises(ValueError, match="strings and others numbers"):
        member_predictions([GaussianNB().fit(X, NAMED), GaussianNB().fit(X, NUMBERED)], X)


def test_several_outputs_are_refused():
    both = np.column_stack([NUMBERED, NUMBERED])
    with pytest.raises(ValueError, match="several outputs"):
        member_predictions(RandomForestClassifier(2).fit(X, both), X)
    with pytest.raises(ValueError, match=r"shape \(90, 2\)"):
        member_predictions([DecisionTreeClassifier().fit(X, both)], X)


@pytest.mark.parametrize(
    "members",
    [
        RandomForestClassifier(2, random_state=0).fit(X, NAMED),
        [SVC(kernel="rbf").fit(X, NAMED)],
        [make_pipeline(StandardScaler(), LogisticRegression()).fit(X, NAMED)],
        [LogisticRegression()],
    ],
    ids=["forest", "kernel", "pipeline", "unfitted"],
)
def test_weights_need_linear_members(members):
    with pytest.raises(TypeError, match="fitted linear models with coef_"):
        member_weights(members)


def test_weights_need_members_of_one_shape():
    models = [LogisticRegression().fit(X, NAMED), LogisticRegression().fit(TWO_X, TWO_NAMED)]
    with pytest.raises(ValueError, match="different shapes"):
        member_weights(models)
