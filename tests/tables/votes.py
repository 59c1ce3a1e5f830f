"""A vote of members on columns of a table of their own, as many tests want it."""

import numpy as np
from sklearn.pipeline import Pipeline

from exclusivity import ERMClassifier
from exclusivity.tables import TableEncoder


def table_vote(n_estimators=9, **parameters):
    """A pipeline of an encoder and a vote; parameters go to the one that knows them."""
    own = TableEncoder().get_params()
    encoder = {name: parameters.pop(name) for name in own.keys() & parameters.keys()}
    voting = {"exclusivity": np.inf, "voting": "hard", "class_weight": "balanced"}
    classifier = ERMClassifier(n_estimators, **(voting | parameters))
    return Pipeline([("encoder", TableEncoder(**encoder)), ("classifier", classifier)])
