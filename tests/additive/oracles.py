"""Slow, obvious references for the robust additive model: a conic solver, and an exhaustive adversary."""

import itertools
import warnings

import cvxpy as cp
import numpy as np

# What is aimed at, and what counts as "almost solved".
_TOLERANCES = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-8)
_TOLERANCES |= {f"reduced_{name}": 1e-7 for name in _TOLERANCES}


def reachable(column, threat, x, own):
    """All values that the function of a column can take when this cell breaks, as rows over its points."""
    eye = np.eye(column.n_points)
    n_knots = len(column.knots)
    if threat == "any":
        return [own, *eye]
    if threat == "missing":
        return [own, eye[-1]]
    is_number = isinstance(x, (int, float)) and not np.isnan(x)
    if threat == "increase" and is_number:
        return [own, *(eye[v] for v in range(n_knots) if column.knots[v] > x)]
    if threat == "decrease" and is_number:
        return [own, *(eye[v] for v in range(n_knots) if column.knots[v] < x)]
    if isinstance(threat, tuple):
        low, high = threat
        ends = [phi(column, end) for end in threat]
        return [own, *ends, *(eye[v] for v in range(n_knots) if low <= column.knots[v] <= high)]
    return [own]


def reached_from(column, threat, x, own):
    """All values that the function of a column can have had before this cell was attacked."""
    is_known = isinstance(x, (int, float)) and not np.isnan(x)
    if threat in ("increase", "decrease"):
        return reachable(column, {"increase": "decrease", "decrease": "increase"}[threat], x, own)
    if threat == "missing":
        return reachable(column, "trusted" if x is not None else "any", x, own)
    if isinstance(threat, tuple):
        return reachable(column, "any" if is_known and threat[0] <= x <= threat[1] else "trusted", x, own)
    return reachable(column, threat, x, own)


def phi(column, x):
    """A cell as a combination of points, from the definition."""
    row = np.zeros(column.n_points)
    if column.kind == "category":
        text = None if x is None else str(x)
        known = list(column.categories)
        row[
            -1 if text is None else known.index(text) if text in known else len(known) if column.rare else -1
        ] = 1
    elif x is None or np.isnan(x):
        row[-1] = 1
    else:
        for v in range(len(column.knots)):
            hat = np.zeros(len(column.knots))
            hat[v] = 1
            row[v] = np.interp(x, column.knots, hat)
    return row


def conic_optimum(model, X, y, cost, threats, groups, radii, loss, monotone, ridge):
    """The minimum of the robust objective, by a conic solver, straight from its definition."""
    columns, expand = model.columns_, model._levels.expand.toarray()
    h, b = cp.Variable(expand.shape[1]), cp.Variable()
    points = expand @ h
    starts = model._levels.starts
    penalty, constraints, at = 0, [], 0
    for place, column in enumerate(columns):
        own = h[at : at + column.n_levels]
        penalty += 0.5 * ridge * cp.sum_squares(own)
        n_knots = len(column.knots)
        if n_knots > 1:
            steps = own[1:n_knots] - own[: n_knots - 1]
            penalty += 0.5 * model.smoothness * cp.sum_squares(steps)
            if monotone is not None and monotone[place]:
                constraints.append(monotone[place] * steps >= 0)
        at += column.n_levels
    total = penalty
    for i in range(len(X)):
        s = 1 if y[i] == model.classes_[1] else -1
        margin, damage = b, [[] for _ in range(max(groups) + 1)]
        for place, column in enumerate(columns):
            values = points[starts[place] : starts[place + 1]]
            own = phi(column, X[i][place])
            margin = margin + own @ values
            moves = np.array([own - each for each in reachable(column, threats[place], X[i][place], own)])
            damage[groups[place]].append(cp.max(s * (moves @ values)))
        sums = cp.hstack([cp.sum(cp.hstack(each)) if each else 0 for each in damage])
        for q in radii:
            worst = cp.sum(sums) if q >= len(damage) else cp.sum_largest(sums, q) if q else 0
            violation = 1 - s * margin + worst
            clean = model.clean_weight if len(radii) > 1 else 1.0
            cost_q = cost[i] * (clean if q == 0 else (1 - clean) / (len(radii) - 1))
            if loss == "squared_hinge":
                total = total + cost_q * cp.square(cp.pos(violation))
            elif loss == "hinge":
                total = total + cost_q * cp.pos(violation)
            else:
                total = total + cost_q * cp.logistic(violation - 1)
    problem = cp.Problem(cp.Minimize(total), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # "almost solved": 1e-7
        try:
            problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
        except cp.SolverError:  # of old versions, where the last digits are out of reach
            problem.solve(solver=cp.CLARABEL)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE), problem.status
    return float(problem.value)


def exhaustive_radius(label_of, columns, cells, threats, groups, label, reach=reachable):
    """How many groups may break, by trying every set of groups and every reachable point of their columns."""
    n_breakable = len({group for group, threat in zip(groups, threats, strict=True) if threat != "trusted"})
    for size in range(n_breakable + 1):
        if exhaustive_labels(label_of, columns, cells, threats, groups, size, reach) != {label}:
            return size - 1
    return n_breakable


def exhaustive_labels(label_of, columns, cells, threats, groups, size, reach=reachable):
    """All labels that can come out where so many groups may break, or all if there are fewer."""
    rows = [phi(column, x) for column, x in zip(columns, cells, strict=True)]
    choices = [reach(*each) for each in zip(columns, threats, cells, rows, strict=True)]
    can_break = sorted({group for group, threat in zip(groups, threats, strict=True) if threat != "trusted"})
    found = set()
    for broken in itertools.combinations(can_break, min(size, len(can_break))):
        options = [choices[j] if groups[j] in broken else [rows[j]] for j in range(len(columns))]
        found |= {label_of(chosen) for chosen in itertools.product(*options)}
    return found
