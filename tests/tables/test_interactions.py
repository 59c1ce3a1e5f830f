"""Features of several columns at once: a kernel within members, and nothing across them."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from exclusivity import ERMClassifier, ERMClassifierCV, make_robust_classifier
from exclusivity.robustness import certificate_scope, certify
from exclusivity.robustness.sources import column_sources
from exclusivity.tables import InteractionFeatures, TableEncoder
from exclusivity.tables._interactions import KernelMap
from tables.table_cases import mixed_table

DISJOINT = {"exclusivity": np.inf, "random_state": 0}


def voters(n_estimators=2, **parameters):
    return ERMClassifier(n_estimators, voting="hard", **(DISJOINT | parameters))


def checkerboard(n_rows=300, n_pairs=3, seed=0):
    """Every pair of columns knows the class, and no column alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 2 * n_pairs))
    y = rng.random(n_rows) < 0.5
    for pair in range(n_pairs):
        right = (X[:, 2 * pair] * X[:, 2 * pair + 1] > 0) == y
        X[~right, 2 * pair] *= -1
    return X, y


@parametrize_with_checks([InteractionFeatures(voters(C=0.1), n_landmarks=20, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # One column for two members, and random labels: fewer voters than asked for, and no better groups.
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


class TestKernel:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 4), st.floats(0.2, 5))
    def test_products_with_landmarks(self, seed, n_landmarks, n_columns, width):
        """phi(x) . phi(l) = k(x, l) for every landmark l, by another implementation of k."""
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(60, n_columns))
        learned = KernelMap.learn(rows, np.arange(n_columns), n_landmarks, width, rng)
        assert len(learned.landmarks) == n_landmarks
        others = np.clip(
            rng.normal(size=(20, n_columns)), learned.landmarks.min(axis=0), learned.landmarks.max(axis=0)
        )
        found = learned.features(others) @ learned.features(learned.landmarks).T
        expected = rbf_kernel(others, learned.landmarks, gamma=1 / (width * rows.var(axis=0).sum()))
        # Directions that are left out hold a millionth of the largest at most, n_landmarks of them.
        assert np.abs(found - expected).max() <= np.sqrt(1e-6 * n_landmarks * n_landmarks) + 1e-9

    def test_huge_values_stay_within_bounds(self):
        rng = np.random.default_rng(0)
        learned = KernelMap.learn(rng.normal(size=(50, 3)), np.arange(3), 20, 1.0, rng)
        features = learned.features(np.array([[1e300, -1e300, 1e308], [-np.inf, np.inf, 0.0]]))
        assert np.isfinite(features).all()
        assert np.all(np.linalg.norm(features, axis=1) <= 1 + 1e-9)  # k(x, x) = 1

    def test_equal_rows_have_no_features(self):
        assert KernelMap.learn(np.ones((9, 2)), np.arange(2), 5, 1.0, np.random.default_rng(0)) is None

    @pytest.mark.parametrize("size", [1e200, 1e-160, 1e-200])
    def test_squares_that_overflow_or_vanish(self, size):
        with pytest.raises(ValueError, match="scale them first"):
            KernelMap.learn(np.array([[size], [-size]]), np.arange(1), 5, 1.0, np.random.default_rng(0))


class TestFeatures:
    def test_columns_stay_in_their_members(self):
        """Whatever a column of another member shows, a member's features are the same bit by bit."""
        X, y = checkerboard()
        step = InteractionFeatures(voters(3), n_landmarks=30, random_state=0).fit(X, y)
        rows = np.asarray(step.transform(X))
        assert sorted(np.unique(step.members_)) == [0, 1, 2]
        for member in range(3):
            broken = X.copy()
            broken[:, step.owners_ != member] = np.random.default_rng(1).normal(
                size=(len(X), np.sum(step.owners_ != member)), scale=1e3
            )
            own = step.members_ == member
            np.testing.assert_array_equal(np.asarray(step.transform(broken))[:, own], rows[:, own])

    @pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, lambda X: X.astype(np.float32)])
    def test_forms_of_rows(self, form):
        X, y = checkerboard(120)
        step = InteractionFeatures(voters(3), n_landmarks=30, random_state=0)
        expected = step.fit(X, y).transform(X)
        found = clone(step).fit(form(X), y).transform(form(X))
        assert found.dtype == form(X).dtype
        tolerance = 1e-9 if found.dtype == np.float64 else 1e-3
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=tolerance)

    def test_names_and_groups(self):
        X, y = checkerboard(60)
        step = InteractionFeatures(voters(2), n_landmarks=5, random_state=0).fit(X, y)
        assert step.transform(X).feature_groups.tolist() == step.members_.tolist()
        assert step.get_feature_names_out()[0] == "group0_0"
        assert len(step.get_feature_names_out()) == step.transform(X).shape[1]

    def test_many_rows_are_taken_block_by_block(self):
        X, y = checkerboard(9000)
        step = InteractionFeatures(voters(2), n_landmarks=5, random_state=0).fit(X[:200], y[:200])
        np.testing.assert_allclose(step.transform(X)[5000:5010], step.transform(X[5000:5010]), atol=1e-12)

    @pytest.mark.parametrize(
        ("step", "message"),
        [
            (InteractionFeatures(ERMClassifier(2)), "voters need exclusivity=np.inf"),
            (InteractionFeatures(ERMClassifierCV(2)), "voters must be an ERMClassifier; got ERMClassifierCV"),
            (InteractionFeatures(3), "voters must be an ERMClassifier; got int"),
            (InteractionFeatures(n_landmarks=1), "n_landmarks must be"),
            (InteractionFeatures(width=0.0), "width must be"),
        ],
    )
    def test_refusals(self, step, message):
        with pytest.raises((TypeError, ValueError), match=message):
            step.fit(*checkerboard(40))

    def test_nothing_varies(self):
        with pytest.raises(ValueError, match="No column of X varies"):
            InteractionFeatures(voters(2)).fit(np.ones((20, 3)), np.arange(20) % 2)


class TestOneLine:
    def test_a_checkerboard(self):
        """Pairs of columns that belong together, told to the members: additive ones see nothing."""
        X, y = checkerboard(400)
        groups = {"partition": [0, 0, 1, 1, 2, 2], "random_state": 0}
        found = {}
        for interactions in (False, True):
            model = make_robust_classifier(3, interactions=interactions, **groups)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # members that vote for one class
                model.fit(X[:300], y[:300])
            right = model.predict(X[300:]) == y[300:]
            found[interactions] = np.mean(right & (certify(model, X[300:]) >= 1))
        assert found[True] > found[False] + 0.4

    def test_parameters_go_where_they_belong(self):
        options = {"restarts": 1, "radius": 2}
        model = make_robust_classifier(
            5, C=3.0, interactions=True, partition="random", voting="runoff", n_knots=4, random_state=7
        )
        encoder, step, classifier = model
        assert (encoder.n_knots, classifier.C, classifier.partition) == (4, 3.0, "learned")
        asked = step.voters
        assert (asked.n_estimators, asked.partition, asked.voting) == (5, "random", "runoff")
        assert (asked.C, asked.random_state, step.random_state) == (0.1, 7, 7)
        given = make_robust_classifier(3, interactions=True, solver_options=options)
        assert given[1].voters.solver_options == options
        for wrong in ({"voting": "soft"}, {"exclusivity": 5.0}):
            with pytest.raises(ValueError, match="interactions=True needs members"):
                make_robust_classifier(3, interactions=True, **wrong)

    def test_every_member_has_one_group(self):
        table, y = mixed_table(150)
        model = make_robust_classifier(3, interactions=True, random_state=0).fit(table, y)
        assert sorted(model[-1].partition_.tolist()) == [0, 1, 2]
        assert certificate_scope(model) == "test"
        additive = make_robust_classifier(3, C=0.1, random_state=0).fit(table, y)
        np.testing.assert_array_equal(
            model[1].owners_, additive[-1].partition_[additive[-1].groups_], "the additive members' groups"
        )


class TestSources:
    def test_a_member_is_one_source(self):
        table, y = mixed_table(150)
        model = make_robust_classifier(3, interactions=True, random_state=0).fit(table, y)
        encoder, step, _ = model
        sources = column_sources(model[:-1])
        for member in range(3):
            own = encoder.sources_[step.owners_ == member]
            assert set(sources[step.members_ == member]) == {own.min()}

    def test_members_that_share_an_input_are_one_source(self):
        """Splines of one column in different members: one broken value reaches all of them."""
        X, y = checkerboard(150, n_pairs=2)
        splines = SplineTransformer(3, degree=1)
        n_columns = splines.fit_transform(X).shape[1]
        owners = np.arange(n_columns) % 3  # each of the four inputs reaches every member
        step = InteractionFeatures(voters(3, partition=owners), n_landmarks=20, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = make_pipeline(splines, step, voters(3)).fit(X, y)
        assert set(column_sources(model[:-1])) == {0}
        assert certify(model, X).max() == 0

    def test_alone(self):
        X, y = checkerboard(100)
        step = InteractionFeatures(voters(2, partition=[1, 0, 0, 1, 1, 0]), n_landmarks=9, random_state=0)
        sources = column_sources(make_pipeline(StandardScaler(), step).fit(X, y))
        assert sources.tolist() == column_sources(step).tolist()
        assert set(sources[step.members_ == step.owners_[0]]) == {0}
        assert set(sources) == {0, 1}

    def test_a_pipeline_within_a_pipeline_changes_nothing(self):
        """Members own splines of columns that others own splines of: only the whole pipeline shows that."""
        X, y = checkerboard(150, n_pairs=2)
        splines = SplineTransformer(3, degree=1)
        owners = np.arange(splines.fit_transform(X).shape[1]) >= 7  # splines of two columns and a half
        step = InteractionFeatures(voters(2, partition=owners.astype(int)), n_landmarks=20, random_state=0)
        flat = make_pipeline(splines, step).fit(X, y)
        nested = make_pipeline(clone(splines), make_pipeline(clone(step))).fit(X, y)
        assert column_sources(nested).tolist() == column_sources(flat).tolist()
        assert set(column_sources(flat)) == {0}

    @pytest.mark.parametrize("depth", [1, 3])
    def test_beside_other_parts_it_has_no_certificate(self, depth):
        """The other part looks at columns of the member, each as a source of its own."""
        X, y = checkerboard(60)
        part = InteractionFeatures(voters(2), n_landmarks=9, random_state=0)
        for _ in range(depth - 1):
            part = make_pipeline(part)
        parts = (
            FeatureUnion([("together", part), ("alone", StandardScaler())]),
            make_column_transformer((part, [0, 1, 2, 3]), (StandardScaler(), [3, 4, 5])),
        )
        for both in parts:
            model = make_pipeline(both, voters(2)).fit(X, y)
            with pytest.raises(ValueError, match="Make it a step of the pipeline itself"):
                certify(model, X)

    def test_exhaustive(self):
        """All pairs of columns of a vote of five, set to every corner of a grid: the radius holds."""
        X, y = checkerboard(200, n_pairs=3)
        model = make_robust_classifier(5, interactions=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X, y)
        radii, labels = certify(model, X), model.predict(X)
        assert radii.max() == 2
        corners = [-1e300, -0.9, -0.3, 0.0, 0.4, 1.0, 1e300, np.nan]
        turned = False
        for row in [place for r in np.unique(radii) for place in np.flatnonzero(radii == r)[:2]]:
            for first, second in product(range(6), repeat=2):
                values = np.array(list(product(corners, repeat=2)))
                changed = np.repeat(X[row : row + 1], len(values), axis=0)
                changed[:, first], changed[:, second] = values[:, 0], values[:, 1]
                same = model.predict(changed) == labels[row]
                assert same.all() or radii[row] < len({first, second})
                turned |= not same.all()
        assert turned


def test_behind_an_encoder_a_column_has_one_member():
    table, y = mixed_table(120)
    encoder = TableEncoder().fit(table)
    step = InteractionFeatures(voters(3), random_state=0).fit(encoder.transform(table), y)
    for source in np.unique(encoder.sources_):
        assert len(np.unique(step.owners_[encoder.sources_ == source])) == 1
