"""Run-offs: who wins, and what is certified of it, beside definitions tried out exhaustively."""

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import attack, certify, corrupt, elect
from exclusivity.voting.members import member_scores
from exclusivity.voting.preferences import (
    UNDECIDED,
    PairPreferences,
    certain_preferences,
    member_votes,
)
from exclusivity.voting.rules import RULES
from robustness.robust_cases import fitted, split
from robustness.runoff_oracle import (
    exhaustive_threats,
    preferences_of,
    radius_of_one,
    random_election,
    winners_of_all_rankings,
)


def runoff(name, **parameters):
    """The members of ``fitted`` under the other rule."""
    clf = fitted(name, **parameters)
    return ERMClassifier(**{**clf.get_params(), "voting": "runoff"}), clf


def elected(name, **parameters):
    model, members = runoff(name, **parameters)
    model.__dict__.update({k: v for k, v in vars(members).items() if k != "voting"})
    return model


# --- who wins ---------------------------------------------------------------------------------------------


def slow_winner(scores, n_classes, multi_class):
    """The rule in words, one row at a time; ``scores`` are (n_problems, n_members)."""
    n_members = scores.shape[1]
    votes = member_votes(scores[None], n_classes, multi_class)[0]
    pairs = list(combinations(range(n_classes), 2))
    margins = np.zeros(n_classes)
    for c in range(n_classes):
        if multi_class == "ovr":
            margins[c] = scores[c].mean()
        else:
            margins[c] = sum(
                scores[p].mean() * (1 if c == i else -1) for p, (i, j) in enumerate(pairs) if c in (i, j)
            )
    order = sorted(range(n_classes), key=lambda c: (-np.sum(votes == c), -margins[c], c))
    a, b = sorted(order[:2])
    if multi_class == "ovr":
        for_a = sum(scores[a, k] >= scores[b, k] for k in range(n_members))
    else:
        for_a = sum(scores[pairs.index((a, b)), k] > 0 for k in range(n_members))
    return max((a, b), key=lambda c: (for_a if c == a else n_members - for_a, margins[c], -c))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("n_members", [1, 4, 7])
def test_the_two_with_most_votes_meet_again(multi_class, n_classes, n_members):
    rng = np.random.default_rng(n_classes)
    n_problems = n_classes if multi_class == "ovr" else n_classes * (n_classes - 1) // 2
    scores = np.concatenate(
        [
            rng.normal(size=(150, n_problems, n_members)),
            rng.integers(-1, 2, size=(150, n_problems, n_members)).astype(float),  # many ties
        ]
    )
    decision = RULES["runoff"].decide(scores, n_classes, multi_class)
    expected = [slow_winner(row, n_classes, multi_class) for row in scores]
    assert np.array_equal(decision.argmax(axis=1), expected)
    finalists = np.sort(decision, axis=1)[:, -2:]
    assert np.allclose(finalists.sum(axis=1), 3 * n_members, atol=0.99)  # all voters twice, and all votes
    if n_members > 1:
        hard = RULES["hard"].decide(scores, n_classes, multi_class).argmax(axis=1)
        assert 0.5 < np.mean(hard == expected) < 1


def test_two_classes_are_a_hard_vote():
    hard, rows = fitted("heart"), split("heart")[2]
    twice = elected("heart")
    assert np.array_equal(twice.decision_function(rows), hard.decision_function(rows))
    assert np.array_equal(twice.predict(rows), hard.predict(rows))
    assert np.array_equal(twice.certify(rows), hard.certify(rows))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_largest_score_is_the_prediction(multi_class):
    clf, rows = elected("wine", multi_class=multi_class), split("wine")[2]
    codes = clf.decision_function(rows).argmax(axis=1)
    assert np.array_equal(clf.classes_[codes], clf.predict(rows))
    assert clf.score(rows, split("wine")[3]) > 0.85


def test_there_is_no_one_model_behind_a_run_off():
    clf = elected("iris")
    with pytest.raises(AttributeError, match="voting='runoff'"):
        _ = clf.coef_
    with pytest.raises(ValueError, match="'soft', 'hard', 'runoff'; got 'second'"):
        ERMClassifier(voting="second").fit(*split("iris")[:2])


# --- the certificate, election by election ----------------------------------------------------------------


def compare(n_elections, seed, **how):
    """The share of exact radii; none, and no threat, above the truth."""
    rng, exact = np.random.default_rng(seed), 0
    for number in range(n_elections):
        rankings, supports, n_classes = random_election(rng, **how)
        truth = exhaustive_threats(rankings, supports, n_classes)
        ballots = preferences_of(rankings, n_classes)
        found = RULES["runoff"].min_changes(ballots, supports, n_classes)[0]
        n_features = supports.shape[1]
        assert np.all(np.minimum(found, n_features + 1) <= truth), (rankings, supports)
        radius = radius_of_one(found, n_features)
        assert radius <= radius_of_one(truth, n_features)
        if number % 5 == 0:
            quick = RULES["runoff"].min_changes(ballots, supports, n_classes, all_classes=False)[0]
            assert radius_of_one(quick, n_features) == radius
        exact += radius == radius_of_one(truth, n_features)
    return exact / n_elections


def test_a_thousand_elections_on_features_of_their_own():
    assert compare(1000, 0) >= 0.99


def test_a_thousand_elections_on_shared_features():
    assert compare(1000, 1, overlap=True) > 0.8


@pytest.mark.parametrize("overlap", [False, True])
def test_elections_in_which_half_of_the_members_abstain(overlap):
    assert compare(400, 5, overlap=overlap, abstain=0.5) > 0.8


@pytest.mark.parametrize("abstain", [0.1, 0.5])
def test_the_reference_is_what_all_rankings_and_abstentions_give(abstain):
    rng = np.random.default_rng(2)
    for _ in range(25):
        rankings, supports, n_classes = random_election(
            rng, n_members=3, n_classes=3, overlap=bool(rng.integers(2)), abstain=abstain
        )
        quick = exhaustive_threats(rankings, supports, n_classes)
        assert np.array_equal(
            quick, exhaustive_threats(rankings, supports, n_classes, winners_of_all_rankings)
        )


def test_undecided_members_may_say_anything():
    rng = np.random.default_rng(3)
    for _ in range(60):
        rankings, supports, n_classes = random_election(rng, n_members=5, n_classes=3, abstain=0)
        ballots = preferences_of(rankings, n_classes)
        open_member = int(rng.integers(5))
        ballots.votes[0, open_member] = UNDECIDED
        ballots.duels[0, :, open_member] = UNDECIDED
        found = RULES["runoff"].min_changes(ballots, supports, n_classes)[0]
        for ranking in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
            said = [ranking if k == open_member else r for k, r in enumerate(rankings)]
            truth = exhaustive_threats(said, supports, n_classes)
            assert np.all(np.minimum(found, supports.shape[1] + 1) <= truth)


def test_one_against_one_members_need_no_ranking():
    """Round-about preferences, a over b over c over a, are certified too."""
    duels = np.array([[[0, 0, 0], [1, 1, 1], [0, 0, 0]]], dtype=np.int8)  # 0 over 1, 2 over 0, 1 over 2
    ballots = PairPreferences(np.array([[0, 0, 1]]), duels, 3)
    # Class 0 and class 1 meet, and all prefer 0: one change is a tie of 1 and 2 for the final, which 2 wins.
    assert RULES["runoff"].min_changes(ballots, np.eye(3, dtype=bool), 3)[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_sides_stand_within_the_slack(multi_class):
    rng = np.random.default_rng(5)
    scores = rng.integers(-2, 3, size=(40, 3, 2)).astype(float)
    slack = rng.choice([0.0, 0.4, 0.6], size=scores.shape)
    for rival in range(3):
        rivals = np.full(40, rival)
        sides = certain_preferences(scores, slack, 3, multi_class).against(rivals)
        for signs in product([-1, 1], repeat=3):
            moved = scores + slack * np.array(signs)[:, None]
            said = certain_preferences(moved, np.zeros_like(slack), 3, multi_class).against(rivals)
            others = np.arange(3) != rival
            assert np.all((sides == said) | (sides == UNDECIDED), where=others[:, None])
        assert (sides[:, others] == UNDECIDED).any()
        assert (sides[:, others] != UNDECIDED).any()


# --- fitted models -----------------------------------------------------------------------------------------


def assert_sound(model, rows, reference, predict=None, radius=None, groups=None):
    predict = model.predict if predict is None else predict
    radius = certify(model, rows) if radius is None else radius
    before, tested = predict(rows), 0
    for r, kind in product(range(1, 5), ("outliers", "swapped", "stuck")):
        chosen = radius >= r
        if chosen.any():
            broken = corrupt(
                rows[chosen], r, kind, reference=reference, size=50, random_state=r, feature_groups=groups
            )
            assert np.array_equal(predict(broken), before[chosen])
            tested += int(chosen.sum())
    return tested


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("setting", [{}, {"exclusivity": 1e3}, {"n_groups": 7}], ids=str)
def test_random_damage_changes_no_certified_prediction(setting, multi_class):
    X, _, rows, _ = split("wine")
    clf = elected("wine", multi_class=multi_class, **setting)
    assert assert_sound(clf, rows, X, groups=clf.feature_groups) > 20
    assert np.array_equal(certify(clf, rows), clf.certify(rows))


@pytest.mark.parametrize(("name", "multi_class"), [("wine", "ovr"), ("wine", "ovo"), ("digits", "ovr")])
def test_the_adversary_fails_within_the_radius(name, multi_class):
    rows = split(name)[2][: 4 if name == "digits" else 60]
    clf = elected(name, multi_class=multi_class)
    radius, reached = clf.certify(rows), []
    for r in np.unique(radius):
        chosen = rows[radius == r]
        if r > 0:
            assert not attack(clf, chosen, int(r), max_sets=0).succeeded.any()
        reached.append(attack(clf, chosen, int(r) + 1, max_sets=0).succeeded)
    assert np.concatenate(reached).mean() > 0.7


def test_an_exhaustive_search_changes_no_certified_prediction():
    clf, rows = elected("wine", n_estimators=5, n_groups=6), split("wine")[2][:30]
    radius, before, tested = clf.certify(rows), clf.predict(rows), 0
    for r in (1, 2):
        chosen = radius >= r
        for groups in combinations(range(6), r):
            for sizes in product([-1e4, -3.0, 3.0, 1e4], repeat=r):
                broken = rows[chosen].copy()
                for group, value in zip(groups, sizes, strict=True):
                    broken[:, clf.groups_ == group] = value
                assert np.array_equal(clf.predict(broken), before[chosen])
                tested += len(broken)
    assert tested > 300


@pytest.mark.filterwarnings("ignore:.*compete for")
def test_members_without_features_do_not_vote():
    X, y, rows, _ = split("iris")
    clf = ERMClassifier(9, exclusivity=np.inf, voting="runoff", random_state=0).fit(X, y)
    few = ERMClassifier(
        4,
        exclusivity=np.inf,
        voting="runoff",
        solver_options={"partition": clf.partition_, "restarts": 0},
    ).fit(X, y)
    assert np.array_equal(clf.predict(rows), few.predict(rows))
    assert np.array_equal(clf.certify(rows), few.certify(rows))


MEMBERS = {
    "svm": LinearSVC(C=0.1),
    "logistic": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=3),
    "pairs": SVC(decision_function_shape="ovr"),
    "scaled": make_pipeline(StandardScaler(), LinearSVC(C=0.1)),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_partitions_of_any_members_that_rank_classes(kind):
    X, y, rows, labels = split("wine")
    clf = FeaturePartitionClassifier(MEMBERS[kind], 7, random_state=0, voting="runoff").fit(X, y)
    assert assert_sound(clf, rows, X) > 20
    assert np.array_equal(certify(clf, rows), clf.certify(rows))
    assert np.mean(clf.predict(rows) == labels) > 0.8
    hard = clf.certify(rows) >= 1, certify(clf, rows, voting="hard") >= 1
    assert hard[0].sum() >= hard[1].sum()
    radius = clf.certify(rows)
    assert not attack(clf, rows[radius >= 1], 1, max_sets=0).succeeded.any()
    with pytest.raises(ValueError, match="'hard', 'runoff'; got 'soft'"):
        FeaturePartitionClassifier(MEMBERS[kind], 7, voting="soft").fit(X, y)


class Silent(ClassifierMixin, BaseEstimator):
    """Says one class and nothing about the others."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("base", [Silent(), SVC(decision_function_shape="ovo")], ids=["silent", "pairs"])
def test_members_that_do_not_rank_classes_are_refused(base):
    X, y, rows, _ = split("wine")
    clf = FeaturePartitionClassifier(base, 5, random_state=0, voting="runoff")
    way_out = "decision_function_shape='ovr'" if isinstance(base, SVC) else "or members that have one"
    with pytest.raises(TypeError, match=f"rank classes.*{way_out}"):
        clf.fit(X, y)
    clf.set_params(voting="hard").fit(X, y)
    with pytest.raises(TypeError, match="rank classes"):
        clf.set_params(voting="runoff").predict(rows)


@pytest.mark.parametrize("base", [LinearSVC(C=0.1), LogisticRegression()], ids=["svm", "logistic"])
@pytest.mark.parametrize("voting", ["hard", "runoff"])
def test_random_subspaces_elect_and_certify(base, voting):
    X, y, rows, labels = split("wine")
    bagging = BaggingClassifier(base, 25, max_features=0.16, bootstrap=False, random_state=0).fit(X, y)

    def predict(rows):
        return elect(bagging, rows, voting)

    radius = certify(bagging, rows, voting=voting)
    assert assert_sound(bagging, rows, X, predict, radius) > 20
    assert np.mean(predict(rows) == labels) > 0.85
    if voting == "hard" and isinstance(base, LinearSVC):
        assert np.array_equal(radius, certify(bagging, rows))
        assert np.array_equal(predict(rows)[radius >= 0], bagging.predict(rows)[radius >= 0])


def test_classes_that_a_member_never_saw_rank_last():
    X, y, rows, _ = split("iris")
    member = LogisticRegression().fit(X[y > 0], y[y > 0])
    scores, slack = member_scores(member, rows, 3)
    assert np.all(scores[:, 0] == -np.inf)
    assert np.array_equal(scores[:, 1:].argmax(axis=1) + 1, member.predict(rows))
    assert np.all(slack[:, 1:] > 0)


def test_pipelines_elect_in_their_own_columns():
    X, y, rows, _ = split("wine")
    raw = ERMClassifier(5, exclusivity=np.inf, voting="runoff", C=0.1, random_state=0)
    model = make_pipeline(StandardScaler(), raw).fit(X, y)
    assert np.array_equal(certify(model, rows), model[-1].certify(model[0].transform(rows)))
    assert np.array_equal(elect(model, rows), model.predict(rows))
    assert np.array_equal(
        elect(model, rows, "hard"), model.set_params(ermclassifier__voting="hard").predict(rows)
    )
    with pytest.raises(ValueError, match="'hard', 'runoff'; got 'soft'"):
        certify(model, rows, voting="soft")


@pytest.mark.parametrize("is_shared", [False, True])
def test_many_classes_take_no_square_of_them(is_shared, monkeypatch):
    """Classes that nobody votes for stand behind in the same way; those with votes are few."""
    n_classes, n_members, rng = 4000, 5, np.random.default_rng(0)
    scores = rng.standard_normal((3, n_classes, n_members))
    scores[0] = rng.standard_normal((n_classes, 1))  # all members agree
    supports = np.eye(n_members, dtype=bool)
    if is_shared:
        supports = np.hstack([supports, np.roll(supports, 1, axis=0)])[:, : n_members + 2]
    ballots = certain_preferences(scores, np.zeros_like(scores), n_classes, "ovr")
    tracemalloc.start()
    threats = RULES["runoff"].min_changes(ballots, supports, n_classes, all_classes=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20  # an array of all pairs of classes has 16 million entries
    # The same election without most of the classes that nobody votes for, and nobody ranks high.
    voted = np.unique(scores.argmax(axis=1))
    others = np.setdiff1d(np.arange(n_classes), voted)[:40]
    kept = np.union1d(voted, others)
    fewer = certain_preferences(scores[:, kept], np.zeros_like(scores[:, kept]), len(kept), "ovr")
    expected = RULES["runoff"].min_changes(fewer, supports, len(kept), all_classes=False)
    np.testing.assert_array_equal(threats[:, kept], expected)
    monkeypatch.setattr("exclusivity.voting.rules.BLOCK_NUMBERS", 1)
    np.testing.assert_array_equal(
        RULES["runoff"].min_changes(fewer, supports, len(kept), all_classes=False), expected
    )
