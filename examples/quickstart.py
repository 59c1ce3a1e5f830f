"""
A linear model and its duality gap
==================================

Train a linear classifier, see how far it is from its optimum, and how it gets there.
"""

# %%
# An ``ERMClassifier`` has scikit-learn's interface.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.inspection import ConvergenceDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = make_pipeline(StandardScaler(), ERMClassifier(n_estimators=30, C=2.0)).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# Thirty members at their optimum are one SVM of cost C / 30 (for ``exclusivity <= 1``), which its
# representation says. The duality gap bounds how far the objective is above the optimum.
clf = model[-1]
print(clf)
print(f"relative duality gap {clf.dual_gap_[0]:.1e} after {clf.n_iter_[0]} iterations")

# %%
# The paper's own algorithm stops when its objective changes little, which is no bound.
paper = make_pipeline(StandardScaler(), ERMClassifier(30, C=2.0, solver="paper")).fit(X_train, y_train)
excess = paper[-1].objective_[0] / clf.objective_[0] - 1
print(f"the paper's algorithm ends {excess:.1%} above the optimum after {paper[-1].n_iter_[0]} iterations")

# %%
# Objective and gap, iteration by iteration: the default solver,
ConvergenceDisplay.from_estimator(model)

# %%
# and the paper's.
ConvergenceDisplay.from_estimator(paper)
plt.show()
