"""
Text with many classes
======================

Which module does a paragraph of scikit-learn's documentation belong to? Thousands of words, thirty classes,
one sparse fit, and a certificate against changed words.
"""

# %%
# The paragraphs are those of the installed docstrings; classes with less than twenty are left out.
import importlib
import inspect
from collections import Counter
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.robustness import certify_words

module_of = {}
for name in sklearn.__all__:
    try:
        module = importlib.import_module(f"sklearn.{name}")
    except ImportError:  # a function, not a module
        continue
    for public in getattr(module, "__all__", ()):
        text = inspect.getdoc(vars(module).get(public)) or ""
        module_of |= {part: name for part in text.split("\n\n") if len(part.split()) >= 8}
sizes = Counter(module_of.values())
texts = [text for text, name in module_of.items() if sizes[name] >= 20]
labels = np.array([module_of[text] for text in texts])
train, test, y, y_test = train_test_split(texts, labels, stratify=labels, random_state=0)

# %%
# All classes, each against the rest, in batches that share their products with the rows. Every problem is
# within ``tol`` of its optimum.
tfidf = TfidfVectorizer(sublinear_tf=True)
X, X_test = tfidf.fit_transform(train), tfidf.transform(test)
print(f"{X.shape[0]} paragraphs, {X.shape[1]} words, {len(set(labels))} classes")
for model in (ERMClassifier(1, C=1.0), LinearSVC(C=1.0)):
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    print(f"{type(model).__name__:14} accuracy {model.score(X_test, y_test):.3f} in {seconds:.2f} s")
    if isinstance(model, ERMClassifier):
        print(f"               largest gap to an optimum: {model.dual_gap_.max():.0e}")
        predicted = model.predict(X_test)

# %%
# How many words may an editor change before a paragraph is sorted elsewhere? The presence of a word does not
# depend on the other words, so that ``certify_words`` can tell.
words = CountVectorizer(binary=True, dtype=np.float64)
present = ERMClassifier(1, C=0.05).fit(words.fit_transform(train), y)
rows = words.transform(test)
right = present.predict(rows) == y_test
radii = {
    "removed": certify_words(present, rows, added=False),
    "added": certify_words(present, rows, removed=False),
}
print(f"presence of words: accuracy {right.mean():.3f}")
for change, radius in radii.items():
    shares = ", ".join(f"{count}: {np.mean(right & (radius >= count)):.2f}" for count in (1, 2, 3, 5))
    print(f"right, and proven for so many words {change}: {shares}")

# %%
# Where the classifier is right, class by class, and what is proven.
names = sorted(set(labels), key=lambda name: np.mean((predicted == y_test)[y_test == name]))
figure, (left, axes) = plt.subplots(1, 2, figsize=(10, 5.5), layout="constrained")
left.barh(names, [np.mean((predicted == y_test)[y_test == name]) for name in names])
left.tick_params(axis="y", labelsize=7)
left.set(xlabel="share of its paragraphs that is found", xlim=(0, 1))
for change, radius in radii.items():
    shares = [np.mean(right & (radius >= count)) for count in range(9)]
    axes.step(range(9), shares, where="mid", label=f"words {change}")
axes.set(xlabel="changed words", ylabel="certified accuracy", ylim=(0, 1))
axes.legend()
plt.show()
