"""
Good words that carry spam past a filter
========================================

Spammers add words that good mails contain. A filter whose score can only rise with a word cannot be fooled
so, at some cost in detection. (The guide: "Detection under evasion".)
"""

# %%
# Spambase (bundled): 4597 mails, and for each how frequent 54 words and characters are, in per cent.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import RobustAdditiveClassifier
from exclusivity.io import load_dataset

mails = load_dataset("spambase", scaled=False)
X = pd.DataFrame(mails.data, columns=mails.feature_names).iloc[:, :54]  # not the lengths of capitals
X_train, X_test, y_train, y_test = train_test_split(X, mails.target, stratify=mails.target, random_state=0)
good, spam = X_test[y_test < 0], X_test[y_test > 0]

# %%
# Three filters. Each is judged at the threshold at which one good mail in a hundred is lost.
filters = {
    "linear SVM": make_pipeline(StandardScaler(), LinearSVC(C=0.1)),
    "additive, worst two words": RobustAdditiveClassifier(max_broken=2, threats="increase"),
    "additive, monotone": RobustAdditiveClassifier(max_broken=0, monotonic_cst=[1] * X.shape[1]),
}
thresholds = {}
for name, model in filters.items():
    model.fit(X_train, y_train)
    thresholds[name] = np.quantile(model.decision_function(good), 0.99)
    detected = model.decision_function(spam) > thresholds[name]
    print(f"{name:26} detects {detected.mean():.1%} of spam")


# %%
# The attack on the SVM: raise those words to 5 % of the mail that lower its score most. For the additive
# models ``attack`` finds the worst words and contents. Of the monotone one there is nothing to find: with
# every word its score rises.
def add_words(rows, count):
    """Return the mails with so many words raised to 5 %, those that lower the score of the SVM most."""
    svm = filters["linear SVM"]
    slopes = svm[-1].coef_[0] / svm[0].scale_
    changed = rows.to_numpy().copy()
    for row in changed:
        best = np.argsort(slopes * (np.maximum(row, 5) - row))[:count]
        row[best] = np.maximum(row[best], 5)
    return pd.DataFrame(changed, columns=rows.columns)


words = [0, 1, 2, 3, 5]
detection = {
    "linear SVM": [
        filters["linear SVM"].decision_function(add_words(spam, count)) > thresholds["linear SVM"]
        for count in words
    ]
}
robust = "additive, worst two words"
detection[robust] = [
    filters[robust].decision_function(filters[robust].attack(spam, count)) > thresholds[robust]
    for count in words
]
monotone = "additive, monotone"
detection[monotone] = [
    filters[monotone].decision_function(add_words(spam, count)) > thresholds[monotone] for count in words
]
print(f"{'words added':26}" + "".join(f"{count:>8}" for count in words))
for name, found in detection.items():
    print(f"{name:26}" + "".join(f"{np.mean(rows):8.1%}" for rows in found))

# %%
# The words that open the SVM to everyone:
slopes = pd.Series(filters["linear SVM"][-1].coef_[0] / filters["linear SVM"][0].scale_, X.columns)
print("best words of the attacker:", ", ".join(slopes.nsmallest(5).index))

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, found in detection.items():
    axes.plot(words, [np.mean(rows) for rows in found], "o-", label=name)
axes.set(xlabel="words added to each spam", ylabel="spam detected at 1 % false alarms", ylim=(0, 1))
axes.legend()
plt.show()
