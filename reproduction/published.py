"""The paper's numbers: Table 1, Table 2 and what its text says about Figure 1.

Transcribed from the LaTeX source of X. Guo, "Exclusivity Regularized Machine". The figure's own data are not
in the source. The rows of the three single machines stand in a comment of that source, below Table 2: they
are the author's, but the published page does not show them.
"""

from __future__ import annotations

from typing import NamedTuple

TABLE1_DATASETS = ("german", "diabetes", "australian", "sonar", "splice", "liver", "heart", "ionosphere")
"""The columns of Table 1, in the paper's order."""

SWEEP, LARGE = "sonar", "ijcnn1"
"""The data sets of Figure 1: errors against lambda, and convergence and training time."""

N_TRAIN = 150
"""Training rows of every trial of Table 1."""

COST = 2.0
"""The paper's lambda in Tables 1 and 2."""

LAMBDA_RANGE = (0.05, 4.0)
"""Lambda in Figure 1, first and second picture."""

MEMBERS, FIGURE_MEMBERS = (10, 30), (5, 10, 30)
"""Sizes of the ensembles in the tables and in Figure 1."""

ITERATIONS = {2: 30, 1: 70}
"""p -> the "about" so many iterations until convergence on ijcnn1 (Figure 1, third picture)."""

STRONG_SETS = ("australian", "sonar", "heart", "ionosphere")
"""The data sets on which the text sees ERM "significantly" ahead."""


class Cell(NamedTuple):
    """Hold a mean and a standard deviation in %, and the rank the paper gives; None where it gives none."""

    mean: float
    std: float
    rank: int | None


# Mean, standard deviation and rank for each of TABLE1_DATASETS; the rows of the comment have no ranks.
_ROWS = {
    "L1-ERM10": "26.08 1.21 5  24.73 1.44 4  14.59 0.84 6  23.62 3.64 4  26.53 1.66 7  42.82 2.41 6  "
    "17.17 1.25 2  13.68 2.60 4",
    "L2-ERM10": "26.00 1.16 3  24.34 0.92 1  14.13 0.40 3  23.79 4.36 5  26.75 2.26 8  36.00 4.05 1  "
    "17.83 1.81 4  13.03 2.20 2",
    "AdaBoost10": "30.51 1.38 8  29.24 2.73 7  48.39 1.91 9  27.59 6.08 10  14.86 3.03 3  46.92 3.59 10  "
    "47.83 3.25 9  30.05 3.13 8",
    "Bagging10": "31.59 2.59 9  30.63 3.38 9  46.43 2.58 7  25.00 8.26 6  19.26 1.78 4  46.00 3.58 8  "
    "47.58 1.94 7  38.71 3.02 10",
    "DRM10": "25.98 1.20 2  24.47 0.89 2  14.09 1.55 2  27.07 3.05 9  35.96 2.85 9  36.77 3.79 3  "
    "19.00 2.22 5  19.50 3.67 5",
    "L1-ERM30": "26.27 1.02 6  33.50 1.92 10  14.24 1.02 4  23.62 2.82 3  25.64 1.63 5  42.77 2.48 5  "
    "17.17 2.30 3  13.30 2.17 3",
    "L2-ERM30": "25.75 1.10 1  25.42 1.41 5  14.02 0.81 1  21.55 3.66 1  26.07 1.80 6  40.05 3.48 4  "
    "17.08 1.26 1  12.99 1.95 1",
    "AdaBoost30": "32.22 2.32 10  29.85 2.77 8  48.94 2.13 10  25.17 7.63 7  14.45 2.53 2  46.26 3.97 9  "
    "47.58 3.27 8  32.34 3.25 9",
    "Bagging30": "29.16 1.02 7  28.58 2.81 6  46.59 1.39 8  21.72 4.24 2  14.00 1.96 1  45.85 2.23 7  "
    "48.08 4.21 10  27.86 2.27 7",
    "DRM30": "26.05 1.14 4  24.47 0.89 2  14.43 1.65 5  26.55 3.91 8  35.98 2.84 10  36.67 4.03 2  "
    "19.00 2.51 6  19.70 3.48 6",
    "L1-PSVM": "26.87 1.33 -  24.56 1.01 -  14.41 0.71 -  26.03 5.72 -  28.35 2.42 -  39.28 4.43 -  "
    "18.33 2.39 -  13.13 2.15 -",
    "L2-PSVM": "30.60 1.78 -  24.81 1.11 -  15.31 2.59 -  32.93 8.39 -  36.18 4.24 -  35.13 3.25 -  "
    "18.67 2.67 -  15.32 2.44 -",
    "nu-SVM": "26.96 1.01 -  24.69 0.80 -  14.07 1.08 -  26.38 2.31 -  34.91 2.84 -  36.15 3.82 -  "
    "18.92 1.36 -  19.85 3.24 -",
}

TABLE1 = {
    (dataset, system): Cell(float(mean), float(std), None if rank == "-" else int(rank))
    for system, text in _ROWS.items()
    for dataset, mean, std, rank in zip(
        TABLE1_DATASETS, text.split()[::3], text.split()[1::3], text.split()[2::3], strict=True
    )
}
"""(data set, system) -> cell; the ten systems of Table 1 and the three rows of the comment."""

PAPER_SYSTEMS = tuple(_ROWS)[:10]
"""The rows of Table 1, in the paper's order."""

ERM_SYSTEMS = tuple(name for name in PAPER_SYSTEMS if "ERM" in name)
"""The paper's own four among them."""

AVERAGE_RANKS = dict(zip(PAPER_SYSTEMS, (4.8, 3.4, 8.0, 7.5, 4.6, 4.9, 2.5, 7.9, 6.0, 5.4), strict=True))
"""The last column of Table 1."""

_SECONDS = (0.0568, 0.0575, 0.1758, 0.3019, 168.5657, 0.1358, 0.1091, 0.2841, 0.2512, 193.9761)
TABLE2 = dict(zip(PAPER_SYSTEMS, _SECONDS, strict=True))
"""Mean training time in seconds, Matlab (DRM: C++) on a 2.5 GHz machine."""
