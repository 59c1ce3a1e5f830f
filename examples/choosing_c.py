"""
Choosing C by a path
====================

Twenty values of C with cross-validation, and what the coefficients do along the way.
"""

# %%
# ``ERMClassifierCV`` makes a grid that fits the data, runs it through five folds, and refits with the best
# value. All fits of a fold share their work, so twenty values cost a few fits.
from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifierCV, erm_path
from exclusivity.inspection import PathDisplay

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data), data.target

start = perf_counter()
clf = ERMClassifierCV(n_estimators=30, Cs=20).fit(X, y)
print(f"C = {clf.C_:.3g}, mean accuracy {clf.best_score_:.3f}; 101 fits in {perf_counter() - start:.1f} s")

# %%
# Scores of the folds: the mean, its spread, and the choice.
PathDisplay.from_estimator(clf)

# %%
# The coefficients themselves, from small weights that compare class means to large ones that separate rows.
# Every point is within ``tol`` of its optimum.
path = erm_path(X, y, Cs=20, n_estimators=30)
print(f"largest relative duality gap along the path: {path.gaps.max():.1e}")
PathDisplay.from_path(path, best_C=clf.C_, feature_names=data.feature_names)
plt.show()
