"""
A credit score with rules
=========================

More savings must not make a customer look riskier. Monotonic constraints put such rules into the fit, and the
duality gap certifies that the score is the best one under them.
"""

# %%
# The German credit data (bundled, 1000 customers), and ten rules that an expert would write down: the signs
# of the score of ``bad`` credit.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from exclusivity import ERMClassifier, RobustAdditiveClassifier
from exclusivity.io import load_dataset

german = load_dataset("german")
names = ["account", "months", "history", "amount", "savings", "employed", "status", "residence"]
names += ["property", "age", "plans", "credits", "dependants", "telephone", "foreign"]
names += [f"indicator_{number}" for number in range(9)]
X, y = pd.DataFrame(german.data, columns=names), german.target  # +1: bad credit
rules = dict.fromkeys(["account", "savings", "employed", "residence", "age"], -1)
rules |= dict.fromkeys(["months", "amount", "property", "credits", "history"], 1)

# %%
# A logistic score, free and with the rules.
settings = {"n_estimators": 1, "C": 1.0, "loss": "logistic", "tol": 1e-8}
scores = {"free": ERMClassifier(**settings), "with rules": ERMClassifier(**settings, monotonic_cst=rules)}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
for name, model in scores.items():
    held_out = cross_val_predict(model, X, y, cv=folds, method="decision_function")
    model.fit(X, y)
    print(f"{name:11} AUC {roc_auc_score(y, held_out):.3f}, gap to the optimum {model.dual_gap_[0]:.0e}")

# %%
# Which rules the data contradict: there the weight ends at exactly zero.
weights = pd.DataFrame({name: pd.Series(model.coef_[0], names) for name, model in scores.items()})
weights.insert(0, "rule", pd.Series(rules))
print(weights.dropna().round(2))

# %%
# The same rules on curves: a scorecard in the units of the table, whose every step can be read.
table = pd.DataFrame(load_dataset("german", scaled=False).data, columns=names)
card = RobustAdditiveClassifier(max_broken=0, monotonic_cst=rules, loss="logistic").fit(table, y)
held_out = cross_val_predict(card, table, y, cv=folds, method="decision_function")
print(f"curves      AUC {roc_auc_score(y, held_out):.3f}")
frame = card.to_frame()
points = frame[frame["column"] == "months"].iloc[:, 2:]
print(points.round(2).to_string(index=False))
steps = np.diff(frame.loc[(frame["column"] == "months") & (frame["level"] != "(missing)")].iloc[:, -1])
print("rises with every step:", (steps >= 0).all())

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
weights.dropna().drop(columns="rule").plot.barh(ax=axes)
axes.axvline(0, color="black", linewidth=0.8)
axes.invert_yaxis()
axes.set(xlabel="weight in the score of bad credit")
plt.show()
