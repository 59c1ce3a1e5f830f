"""
Two vendors down and one lying
==============================

A credit model that buys three of its five sources of data from vendors. Two do not deliver, the third
delivers nonsense, and the model says which of its decisions still hold.
"""

# %%
# The German credit data (bundled, 1000 customers). The application form and the account at the own bank can
# be trusted. The columns of a vendor break together, which is what ``feature_groups`` says.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from exclusivity import RobustAdditiveClassifier
from exclusivity.io import load_dataset

german = load_dataset("german", scaled=False)
names = ["account", "months", "history", "amount", "savings", "employed", "status", "residence"]
names += ["property", "age", "plans", "credits", "dependants", "telephone", "foreign"]
names += [f"indicator_{number}" for number in range(9)]
X = pd.DataFrame(german.data, columns=names)
y = np.where(german.target > 0, "bad", "good")

sources = dict.fromkeys(names, "form")
sources |= dict.fromkeys(["account", "savings"], "bank")
sources |= dict.fromkeys(["history", "plans", "credits"], "bureau")
sources |= dict.fromkeys(["employed", "telephone", "dependants"], "employer")
sources |= dict.fromkeys(["property", "residence", "foreign"], "register")
vendors = ["bureau", "employer", "register"]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# One model that does not know of broken vendors, one that is trained to survive any one of them.
settings = {"feature_groups": sources, "threats": {"form": "trusted", "bank": "trusted"}}
models = {
    "ordinary": RobustAdditiveClassifier(max_broken=0, **settings).fit(X_train, y_train),
    "robust": RobustAdditiveClassifier(max_broken=1, **settings).fit(X_train, y_train),
}
print(f"most frequent class alone: {np.mean(y_test == 'good'):.3f}")
print("right, and right whatever r vendors deliver")
for name, model in models.items():
    radii, right = model.certify(X_test), model.predict(X_test) == y_test
    shares = [np.mean(right & (radii >= r)) for r in range(4)]
    print(f"  {name:9}" + "".join(f"  r={r}: {share:.3f}" for r, share in enumerate(shares)))

# %%
# Monday: the bureau's and the employer's columns are gone, and the register sends the same numbers for
# everyone.
monday = X_test.drop(columns=[name for name in names if sources[name] in vendors[:2]])
monday = monday.assign(property=999, residence=-1, foreign=0)
stands = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # absent columns are warned of
    for name, model in models.items():
        labels = model.predict(monday)
        stands[name] = model.stands(monday, [column for column in names if sources[column] in vendors])
        right = labels == y_test
        print(f"{name}: accuracy {right.mean():.3f}; {stands[name].mean():.0%} of the decisions are proven")
    print(models["robust"].suspects(monday))

# %%
# A decision that stands is the one of Monday without the failure: the same whatever the vendors would have
# said.
same = models["robust"].predict(X_test) == labels
print(f"of the decisions that stand, {same[stands['robust']].mean():.0%} are as on a good day")

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, model in models.items():
    radii, right = model.certify(X_test), model.predict(X_test) == y_test
    axes.plot(range(4), [np.mean(right & (radii >= r)) for r in range(4)], "o-", label=name)
axes.axhline(np.mean(y_test == "good"), color="0.5", linestyle=":", label="most frequent class")
axes.set(
    xlabel="vendors that may deliver anything", ylabel="certified accuracy", xticks=range(4), ylim=(0, 1)
)
axes.legend()
plt.show()
