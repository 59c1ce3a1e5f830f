"""Feature Partition Aggregation: any classifier on disjoint groups of features, a vote, and a certificate."""

from exclusivity.baselines.partition import FeaturePartitionClassifier
from exclusivity.baselines.votes import MarginOf as MarginOf, Tally as Tally

__all__ = ["FeaturePartitionClassifier"]
