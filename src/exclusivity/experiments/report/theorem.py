"""The equivalence theorem with a proof that a student can follow, and the references."""

from __future__ import annotations

from exclusivity.pages import formula, paragraph, section, text

_STATEMENT = """\
F(W, b) = 1/2 sum_j (|W_j1| + ... + |W_jK|)^2 + C sum_k sum_i max(0, 1 - y_i (x_i . w_k + b_k))^p
f(w, b) = 1/2 |w|^2 + C/K sum_i max(0, 1 - y_i (x_i . w + b))^p"""

_EQUAL = """\
F = 1/2 sum_j (K |w_j|)^2 + C K sum_i max(0, 1 - y_i (x_i . w + b))^p
  = K^2 [ 1/2 |w|^2 + C/K sum_i max(0, 1 - y_i (x_i . w + b))^p ]
  = K^2 f(w, b)"""

_STEPS = (
    "Step 1, symmetry. F does not change when the members are renumbered: the first term sums over all "
    "members of a feature, the second over all members.",
    "Step 2, convexity. F is convex: |W_j1| + ... + |W_jK| is convex and not negative, so its square is "
    "convex; max(0, 1 - z)^p is convex in z for p >= 1, and z is linear in the weights.",
    "Step 3, averaging. Take any optimum and shift its members by one place, by two, ..., by K - 1: with "
    "the optimum itself these are K points with the same F (step 1). Take their mean. F there is at most "
    "the mean of the K equal values (step 2), so the mean is an optimum too. In it every member is the "
    "same: the mean member (w_e, b_e) of the optimum we started from, which is the paper's final ensemble.",
)
_END = (
    "Step 5, conclusion. Among points with equal members, minimising F is minimising f, and by step 3 the "
    "minimum of F is found among them: min F = K^2 min f, and the mean member of every optimum minimises f. "
    "The first term makes f strictly convex in w, so w_e is unique. That f is an ordinary SVM of cost C/K "
    "with a free intercept. Nothing else about the ensemble enters the prediction."
)

REFERENCES = (
    "X. Guo. Exclusivity Regularized Machine. arXiv:1603.08318, 2016. The paper that is reproduced here.",
    "F. Nie, Y. Huang, X. Wang, H. Huang. New Primal SVM Solver with Linear Computational Cost for Big Data "
    "Classifications. ICML 2014. SVM-ALM, called PSVM in the paper.",
    "Y. Yu, Y.-F. Li, Z.-H. Zhou. Diversity Regularized Machine. IJCAI 2011. DRM.",
    "N. Li, Y. Yu, Z.-H. Zhou. Diversity Regularized Ensemble Pruning. ECML 2012. DREP.",
    "M. Kowalski. Sparse Regression Using Mixed Norms. Applied and Computational Harmonic Analysis 27, 2009. "
    "The mixed norm, solved by a modified FOCUSS algorithm.",
    "Y. Zhou, R. Jin, S. C. H. Hoi. Exclusive Lasso for Multi-task Feature Selection. AISTATS 2010. "
    "The same regulariser between tasks, solved by subgradients.",
    "D. Kong, R. Fujimaki, J. Liu, F. Nie, C. Ding. Exclusive Feature Learning on Arbitrary Structures via "
    "l1,2-norm. NIPS 2014. Iteratively reweighted; the paper's Algorithm 1.",
    "J. Demsar. Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 7, 2006. Average ranks, "
    "Friedman's test, Nemenyi's critical difference.",
    "MathWorks. templateTree, Statistics Toolbox documentation of the paper's time: MinParent defaults to "
    "the number of observations for boosting (so trees with one split) and to 2 for bagging.",
)


def theorem_section() -> str:
    """Statement, proof, what follows."""
    return section(
        "theorem",
        "An ERM of K members is one SVM of cost C/K",
        paragraph(
            "The paper does not notice it, and it explains most of what is measured above. Write W_jk for "
            "the weight of feature j in member k, C for the paper's lambda, and"
        ),
        formula(_STATEMENT),
        paragraph(
            "Theorem. At every optimum (W, b) of F the mean member minimises f, an ordinary SVM with a free "
            "intercept and cost C/K, and min F = K^2 min f."
        ),
        *(paragraph(step) for step in _STEPS),
        paragraph(
            "Step 4, equal members. If all members are (w, b), then |W_j1| + ... + |W_jK| = K |w_j|, and"
        ),
        formula(_EQUAL),
        paragraph(_END),
        paragraph(
            "What follows: any comparison of an ERM with one SVM has to include the SVM at C/K. More "
            "members mean a smaller cost, so training errors rise with K. Members that differ need another "
            "objective (exclusivity above 1), not another start."
        ),
    )


def references_section() -> str:
    """What to read."""
    items = "".join(f"<li>{text(entry)}</li>" for entry in REFERENCES)
    return section("references", "References", f"<ol>{items}</ol>")
