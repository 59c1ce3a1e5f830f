"""
Members that compete for features
=================================

Up to ``exclusivity=1`` the members of an optimum are equal. Above, they compete for features, and at infinity
no two share one.
"""

# %%
# Five members, three values of exclusivity.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.diversity import mean_over_pairs, member_predictions, pairwise_diversity
from exclusivity.inspection import ComponentsDisplay

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data), data.target
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

ensembles = {
    exclusivity: ERMClassifier(5, C=0.5, exclusivity=exclusivity, random_state=0).fit(X_train, y_train)
    for exclusivity in (1, 20, np.inf)
}

# %%
# How many features two members share on average, how often they disagree, and how good their mean is.
print("exclusivity  shared  disagreement  accuracy")
for exclusivity, clf in ensembles.items():
    uses = clf.supports_.astype(int)
    shared = mean_over_pairs(uses @ uses.T)
    disagree = mean_over_pairs(pairwise_diversity(member_predictions(clf, X_test), y_test))
    print(f"{exclusivity:11g}  {shared:6.1f}  {disagree:12.3f}  {clf.score(X_test, y_test):8.3f}")

# %%
# The members as rows: equal ones are drawn once, white is a feature that a member does not use.
figure, axes = plt.subplots(3, figsize=(9, 8), height_ratios=[1, 5, 5], layout="constrained")
for ax, (exclusivity, clf) in zip(axes, ensembles.items(), strict=True):
    ComponentsDisplay.from_estimator(clf, feature_names=data.feature_names, ax=ax)
    ax.set_title(f"exclusivity = {exclusivity:g}", loc="right")
    if ax is not axes[-1]:
        ax.set_xticks([])
plt.show()
