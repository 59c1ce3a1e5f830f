"""Compare the results of two versions of the package on fixed data.

    PYTHONPATH=OLD/src python scripts/compare_versions.py save old.npz
    PYTHONPATH=NEW/src python scripts/compare_versions.py save new.npz
    python scripts/compare_versions.py compare old.npz new.npz

``save`` runs 200 fits and 50 certificates and loads the golden model files with whatever ``exclusivity`` is
imported, through public names that version 0.2.0 had. ``compare`` puts every case into one of four classes:

- identical: every array has the same bits;
- within 1e-10: equal labels and integers, other numbers within 1e-10 of the largest of their array;
- both certified: both fits are certified within the tolerance, and their objectives agree within it;
- DIFFERENT: anything else, an error in one of the versions included. The exit status is then 1.
"""

# ruff: noqa: T201, PLC0415, D103 -- a command talks to its user; the package is imported when it is run

import json
import sys
import warnings
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "persistence" / "golden"
FITTED = ["components_", "component_intercepts_", "objective_", "dual_gap_", "converged_", "partition_", "C_"]
PATH = ["Cs", "coefs", "intercepts", "objectives", "gaps"]
# Rows, columns and density.
SHAPES = {"small": (120, 8, 1.0), "medium": (400, 40, 1.0), "tall": (4000, 10, 1.0), "wide": (50, 300, 1.0)}
SHAPES |= {"sparse": (300, 600, 0.03), "sparse-tall": (4000, 400, 0.02)}
HINGES, LOSSES = ["hinge 1", "hinge 2"], ["hinge 1", "hinge 2", "logistic"]
VOTES, SCHEMES = ["hard", "runoff"], ["ovr", "ovo"]
INF = {"exclusivity": [np.inf], "random_state": [0]}
GROUPS = {"n_estimators": [3], "feature_groups": [list("aabbccdd")], "voting": ["hard"]}
DASK, MEMBERS = {"run": ["dask"], "shape": ["medium"]}, {"run": ["members"], "classes": [2, 3, 5]}
GRIDS = [  # 200 fits; "run" is the kind of fit, everything else a parameter of the classifier or of the data
    {"shape": [*SHAPES], "loss": ["hinge 1", "hinge 1.5", "hinge 2", "hinge 3"], "C": [0.2]},
    {"shape": [*SHAPES], "loss": HINGES, "C": [20.0]},
    {"shape": [*SHAPES], "loss": ["logistic", "smooth_hinge"], "C": [0.2, 20.0]},
    {"shape": ["small", "medium", "sparse"], "loss": HINGES, "solver": ["alm", "paper"]},
    {"shape": ["small", "tall", "sparse"], "loss": LOSSES, "weights": [True]},
    {"shape": ["small", "tall", "sparse"], "loss": LOSSES, "tol": [1e-8]},
    {"shape": ["small", "sparse"], "loss": HINGES, "class_weight": ["balanced"]},
    {"shape": ["small", "wide", "sparse"], "loss": HINGES, "fit_intercept": [False]},
    {"shape": ["small", "sparse"], "loss": HINGES, "sparsity": [0.5]},
    {"shape": ["medium"], "loss": HINGES, "exclusivity": [0.0, 0.3]},
    {"shape": ["small", "sparse"], "loss": HINGES, "coef_bounds": [(0, None), (-0.1, 0.1)]},
    {"loss": HINGES, "monotonic_cst": [[1, -1, 0, 0, 1, 0, 0, 0]]},
    {"loss": HINGES, "dtype": ["float32", "int8", "bool"]},
    {"shape": ["medium", "sparse"], "loss": LOSSES, "classes": [4], "multi_class": SCHEMES},
    {"classes": [4], "multi_class": SCHEMES, "voting": ["hard"], "exclusivity": [0.5]},
    {"loss": HINGES, "exclusivity": [3.0, 50.0], "voting": ["soft", "hard"], "random_state": [0]},
    INF | {"shape": ["medium"], "classes": [4], "voting": ["soft", *VOTES], "multi_class": SCHEMES},
    INF
    | {"shape": ["medium", "sparse"], "loss": HINGES, "voting": ["hard"], "partition": ["learned", "random"]},
    INF | GROUPS | {"partition": ["learned", "random", list("xxyyyyzz")]},
    INF | {"shape": ["medium"], "coef_bounds": [(0, None)]},
    INF | {"shape": ["medium"], "loss": ["logistic", "smooth_hinge"]},
    {"run": ["path"], "shape": ["small", "sparse"], "loss": LOSSES},
    {"run": ["search"], "loss": LOSSES},
    {"run": ["search"], "classes": [3], "multi_class": ["ovo"]},
    {"run": ["search"], "shape": ["sparse"]},
    {"run": ["warm"], "shape": ["medium"], "loss": HINGES},
    DASK | {"loss": LOSSES},
    DASK | {"classes": [3]},
    DASK | {"loss": ["hinge 1"], "weights": [True]},
    DASK | {"coef_bounds": [(0, None)]},
    DASK | INF | {"voting": ["hard"], "partition": ["random", "learned"]},
    DASK | {"shape": ["tall"], "loss": ["hinge 1"]},
    MEMBERS | {"classes": [3], "member": ["tree", "logistic", "bayes"], "voting": VOTES},
    INF | {"run": ["table"], "numeric": ["linear", "spline"], "voting": ["soft", "hard"]},
    INF | {"run": ["table"], "numeric": ["spline"], "voting": ["hard"], "class_weight": ["balanced"]},
    INF | {"run": ["table"], "numeric": ["linear"], "voting": ["runoff"], "class_weight": ["balanced"]},
]
RANDOM = INF | {"partition": ["random"], "tol": [1e-8]}
CERTIFIED = [  # 50 voting models, the members of most from scikit-learn
    MEMBERS | {"member": ["tree", "logistic", "bayes"], "voting": VOTES},
    MEMBERS | {"member": ["nearest"], "random_state": [0, 1]},
    MEMBERS | {"classes": [4], "feature_groups": [[j // 2 for j in range(40)]], "random_state": range(4)},
    RANDOM | {"shape": ["medium"], "classes": [2, 3, 5], "voting": VOTES, "multi_class": SCHEMES},
    INF | {"shape": ["medium"], "classes": [3, 5], "voting": VOTES, "n_estimators": [8], "tol": [1e-8]},
    RANDOM | {"run": ["table"], "numeric": ["linear", "spline"], "voting": ["hard"]},
    INF | {"run": ["table"], "numeric": ["linear", "spline"], "C": [0.1, 1.0], "voting": ["hard"]},
]


@cache
def data(shape, n_classes):
    """Return training rows, labels, positive whole weights, and 40 other rows."""
    n_rows, n_features, density = SHAPES[shape]
    rng = np.random.default_rng([n_rows, n_features, n_classes])
    X = rng.standard_normal((n_rows + 40, n_features)) * (rng.random((n_rows + 40, n_features)) < density)
    scores = X @ rng.standard_normal((n_features, n_classes)) + rng.standard_normal((n_rows + 40, n_classes))
    y, weights = scores.argmax(axis=1)[:n_rows], rng.integers(1, 4, n_rows).astype(float)
    kind = sparse.csr_matrix if density < 1 else np.asarray
    return kind(X[:n_rows]), y, weights, kind(X[n_rows:])


@cache
def table():
    """Return a table of numbers, text, truth values and missing values, its labels, and 40 other rows."""
    import pandas as pd

    rng = np.random.default_rng(7)
    numbers = rng.standard_normal((340, 5)).round(3)
    columns = {f"x{j}": np.where(rng.random(340) < 0.1 * (j == 2), np.nan, numbers[:, j]) for j in range(5)}
    columns["colour"] = rng.choice(["red", "blue", "green", "rare"], 340, p=[0.4, 0.3, 0.28, 0.02])
    frame = pd.DataFrame(columns | {"flag": rng.random(340) < 0.3})
    y = numbers[:, 0] + numbers[:, 1] ** 2 + (frame["colour"] == "red") > 1
    return frame[:300], np.where(y, "yes", "no")[:300], frame[300:]


def public(name, *modules):
    """Return the object of this name from the first of the modules that has it."""
    for module in modules:
        try:
            return getattr(import_module(f"exclusivity{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"exclusivity has no {name}")


def member(kind):
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import NearestCentroid
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return {
        "tree": tree,
        "logistic": LogisticRegression(),
        "bayes": GaussianNB(),
        "nearest": NearestCentroid(),
    }[kind]


def train(run="fit", shape="small", classes=2, weights=False, dtype=None, **parameters):
    """Return the fitted model of a case, and rows that it has not seen."""
    import exclusivity

    if "loss" in parameters:
        parameters["loss"], _, p = parameters["loss"].partition(" ")
        parameters |= {"p": float(p)} if p else {}
    if run == "table":
        X, y, rows = table()
        encoder = import_module("exclusivity.tables").TableEncoder(parameters.pop("numeric"))
        return make_pipeline(encoder, exclusivity.ERMClassifier(5, **parameters)).fit(X, y), rows
    X, y, w, rows = data("medium" if run == "members" else shape, classes)
    if dtype:
        X, rows = ((np.round(each) if dtype == "int8" else each).astype(dtype) for each in (X, rows))
    if run == "path":
        return exclusivity.erm_path(X, y, Cs=6, n_estimators=3, **parameters), rows
    if run == "members":
        model = public("FeaturePartitionClassifier", "", ".partition", ".baselines")
        return model(member(parameters.pop("member", "bayes")), 7, **{"random_state": 0} | parameters).fit(
            X, y
        ), rows
    if run == "search":
        return exclusivity.ERMClassifierCV(3, Cs=5, cv=3, **parameters).fit(X, y), rows
    if run == "dask":
        array = import_module("dask.array")
        model = import_module("exclusivity.dask").ERMClassifier(4, **parameters)
        X, y, w = (array.from_array(each, chunks=(len(y) // 3 + 1, *each.shape[1:])) for each in (X, y, w))
        with import_module("dask").config.set(scheduler="synchronous"):
            return model.fit(X, y, sample_weight=w if weights else None), array.from_array(rows)
    model = exclusivity.ERMClassifier(**{"n_estimators": 5} | parameters)
    if run == "warm":
        model.set_params(warm_start=True).fit(X, y).set_params(C=0.5)
    return model.fit(X, y, sample_weight=w if weights else None), rows


def described(model, rows):
    """Return the arrays of a fitted model or path, and its answers for the rows."""
    last = model[-1] if hasattr(model, "steps") else model
    record = {name: getattr(last, name) for name in FITTED + PATH if hasattr(last, name)}
    methods = [each for each in ("predict", "decision_function", "predict_proba") if hasattr(model, each)]
    return (
        record | {each: getattr(model, each)(rows) for each in methods} | {"tol": getattr(last, "tol", 1e-4)}
    )


def certified(model, rows):
    """Return labels, radii, sets of classes that may win and, if the model tells them, members' votes."""
    robustness = import_module("exclusivity.robustness")
    record = {"predict": model.predict(rows), "radius": robustness.certify(model, rows)}
    record |= {f"set {r}": robustness.certify_set(model, rows, r) for r in (1, 2)}
    record |= {"radius of two": robustness.certify(model, rows, top_k=2)} if len(model.classes_) > 2 else {}
    return record | ({"votes": model.component_predict(rows)} if hasattr(model, "component_predict") else {})


def loaded(name):
    """Return a golden model and the rows that belong to it."""
    import pandas as pd

    model = public("load_model", ".io", ".persistence")(GOLDEN / f"{name}.erm")
    rows = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    named = hasattr(model, "feature_names_in_")
    return model, pd.DataFrame(rows, columns=model.feature_names_in_) if named else rows


def save(target):
    """Run every case and write its arrays; a case that raises leaves its error."""
    files = [{"name": path.stem} for path in sorted(GOLDEN.glob("*.erm"))]
    kinds = [(train, described, ParameterGrid(GRIDS)), (train, certified, ParameterGrid(CERTIFIED))]
    arrays, counts = {}, []
    for make, ask, cases in [*kinds, (loaded, described, files)]:
        counts.append(len(cases))
        for case in cases:
            name = f"{ask.__name__} {case}"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    record = ask(*make(**case))
            except Exception as error:
                record = {"error": f"{type(error).__name__}: {error}"}
                print(f"{name}: {record['error']}", file=sys.stderr)
            for field, value in record.items():
                array = np.asarray(value)
                arrays[f"{name}|{field}"] = array.astype(str) if array.dtype == object else array
    np.savez_compressed(target, **arrays)
    print(target, public("__version__", ""), "{} fits, {} certificates, {} model files".format(*counts))


def read(source):
    records = {}
    with np.load(source, allow_pickle=False) as arrays:
        for key in arrays.files:
            name, field = key.rsplit("|", 1)
            records.setdefault(name, {})[field] = arrays[key]
    return records


def judge(a, b):
    """Return the class of a case, and how far the fields are apart that differ."""
    if a.keys() != b.keys() or str(a.get("error")) != str(b.get("error")):
        fields = [f"{field} in one only" for field in sorted(a.keys() ^ b.keys())]
        return "DIFFERENT", [str(each["error"]) for each in (a, b) if "error" in each] or fields
    if all(
        a[f].dtype == b[f].dtype and a[f].shape == b[f].shape and a[f].tobytes() == b[f].tobytes() for f in a
    ):
        return "identical", []
    apart = {field: distance(a[field], b[field]) for field in a}
    if max(apart.values()) <= 1e-10:
        return "within 1e-10", []
    words = [f"{field} {far:.1e}" for field, far in apart.items() if far > 1e-10]
    return ("both certified" if both_certified(a, b, apart) else "DIFFERENT"), words


def distance(a, b):
    """Return the largest difference over the largest number; infinite if labels, integers or NaN differ."""
    if a.shape != b.shape:
        return np.inf
    if a.dtype.kind != "f" or b.dtype.kind != "f" or not np.array_equal(np.isnan(a), np.isnan(b)):
        return 0.0 if np.array_equal(a, b) else np.inf
    largest = np.nanmax(np.abs([a, b]), initial=1e-300)
    return float(np.nanmax(np.abs(a - b), initial=0.0) / largest)


def both_certified(a, b, apart):
    """Tell whether both fits are proven within the tolerance, given equal partitions where there are some."""
    gap, objective = ("gaps", "objectives") if "gaps" in a else ("dual_gap_", "objective_")
    if objective not in a or apart.get("partition_", 0.0) > 0 or apart[objective] == np.inf:
        return False
    close = np.abs(a[objective] - b[objective]) <= a["tol"] * np.abs(b[objective])
    proven = [np.where(np.isnan(e[gap]), e.get("converged_", False), e[gap] <= e["tol"]) for e in (a, b)]
    return bool(np.all(close) and np.all(proven))


def compare(first, second):
    a, b = read(first), read(second)
    counts = Counter()
    for name in dict.fromkeys((*a, *b)):
        verdict, words = judge(a.get(name, {"error": "absent"}), b.get(name, {"error": "absent"}))
        counts[verdict] += 1
        if verdict in ("both certified", "DIFFERENT"):
            print(f"{verdict}: {name}: {', '.join(words)}")
    verdicts = ("identical", "within 1e-10", "both certified", "DIFFERENT")
    print(", ".join(f"{counts[each]} {each}" for each in verdicts))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    if sys.argv[1:2] not in (["save"], ["compare"]) or len(sys.argv) != (3 if sys.argv[1] == "save" else 4):
        sys.exit(__doc__)
    sys.exit(save(*sys.argv[2:]) if sys.argv[1] == "save" else compare(*sys.argv[2:]))
