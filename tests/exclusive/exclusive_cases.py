"""Small problems for the exclusive solver, and slow references that share no code with it."""

from __future__ import annotations

import numpy as np

from exclusivity.objective.objective import ERMProblem


def two_class_rows(n_rows=80, n_features=12, seed=0):
    """Gaussian rows whose labels follow every feature a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    score = X @ rng.uniform(0.5, 1.5, n_features) + rng.normal(size=n_rows)
    return X, np.where(score > 0, 1.0, -1.0)


def binary_problem(n_members=3, exclusivity=np.inf, *, n_rows=80, n_features=12, seed=0, **settings):
    X, y = two_class_rows(n_rows, n_features, seed)
    return ERMProblem.build(X, y, n_members=n_members, exclusivity=exclusivity, **settings)


def one_vs_rest_problems(n_members=3, exclusivity=np.inf, *, n_classes=3, n_rows=120, n_features=12, seed=0):
    """Problems that share rows, labels telling one class from the rest."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, n_features)) + rng.normal(size=(n_classes, n_features))[codes]
    labels = [np.where(codes == c, 1.0, -1.0) for c in range(n_classes)]
    first = ERMProblem.build(X, labels[0], n_members=n_members, exclusivity=exclusivity)
    return [first.changed(labels=own) for own in labels]


def joint_objective(problems, groups, weights, intercepts):
    """The joint objective by loops over members, groups and rows; supports disjoint at inf."""
    gamma = problems[0].regulariser.exclusivity
    total, K = 0.0, problems[0].n_members
    for problem, W, b in zip(problems, weights, intercepts, strict=True):
        X = np.asarray(problem.design.X)
        for k in range(K):
            shortfall = np.maximum(0.0, 1 - problem.labels * (X @ W[:, k] + b[k]))
            total += 0.5 * np.sum(W[:, k] ** 2) + np.sum(problem.regulariser.sparsity * np.abs(W[:, k]))
            total += problem.cost * np.sum(problem.weights * shortfall**problem.loss.p)
    for g in np.unique(groups):
        mass = [sum(np.abs(W[groups == g, k]).sum() for W in weights) for k in range(K)]
        pairs = [mass[k] * mass[m] for k in range(K) for m in range(k)]
        total += 0.0 if np.isinf(gamma) else gamma * sum(pairs)
    return total
