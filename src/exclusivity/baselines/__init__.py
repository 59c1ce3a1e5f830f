"""The systems that the paper compares with and scikit-learn does not have."""

from exclusivity.baselines.drep import PrunedEnsemble, drep_prune, drep_select
from exclusivity.baselines.drm import DRMClassifier
from exclusivity.baselines.partition import FeaturePartitionClassifier
from exclusivity.baselines.psvm import PSVMClassifier
from exclusivity.baselines.votes import MarginOf as MarginOf, Tally as Tally

__all__ = [
    "DRMClassifier",
    "FeaturePartitionClassifier",
    "PSVMClassifier",
    "PrunedEnsemble",
    "drep_prune",
    "drep_select",
]
