"""
Gene expression: more columns than rows
=======================================

73 tissues, 325 genes, seven classes. A linear model is the right size for such data, and a vote of members on
separate genes says how many measurements may be wrong.
"""

# %%
# Lung tissue (bundled): every gene is low, middle or high. Five folds, because every row counts.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from exclusivity import ERMClassifier
from exclusivity.io import load_dataset

lung = load_dataset("lung")
X, y = lung.data, lung.target.astype(int)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
print(f"{X.shape[0]} rows, {X.shape[1]} columns, {len(np.unique(y))} classes")

# %%
# One linear model, one that uses few genes (``sparsity``), and a forest.
models = {
    "linear": ERMClassifier(1, C=0.1),
    "linear, few genes": ERMClassifier(1, C=0.1, sparsity=0.3),
    "random forest": RandomForestClassifier(random_state=0),
}
for name, model in models.items():
    print(f"{name:18} accuracy {np.mean(cross_val_predict(model, X, y, cv=folds) == y):.3f}")
few = models["linear, few genes"].fit(X, y)
print(f"{np.count_nonzero(few.coef_.any(axis=0))} genes used, gap {few.dual_gap_.max():.0e}")

# %%
# Members that share no gene, and vote: a wrong measurement reaches one vote. More members survive more wrong
# genes, and each of them sees fewer. Groups drawn at random make the certificate hold for training columns,
# too.
curves = {}
for members in (7, 13, 25):
    radii, right = np.empty(len(y), dtype=int), np.empty(len(y), dtype=bool)
    for train, test in folds.split(X, y):
        vote = ERMClassifier(
            members, C=1.0, exclusivity=np.inf, voting="runoff", partition="random", random_state=0
        ).fit(X[train], y[train])
        radii[test], right[test] = vote.certify(X[test]), vote.predict(X[test]) == y[test]
    curves[members] = [np.mean(right & (radii >= r)) for r in range(11)]
    print(
        f"{members:2} members: accuracy {right.mean():.3f}, certified at 1, 2, 4 wrong genes:"
        + "".join(f" {curves[members][r]:.2f}" for r in (1, 2, 4))
    )
print(f"what the radii cover: {vote.certificate_scope_}")

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for members, curve in curves.items():
    axes.step(range(11), curve, where="mid", label=f"{members} members")
axes.set(xlabel="genes that may be wrong", ylabel="certified accuracy", ylim=(0, 1))
axes.legend()
plt.show()
