"""Certificates of predictions against broken features, simulated corruption, and attacks."""

from exclusivity.robustness.adversary import Attack, attack
from exclusivity.robustness.certificates import (
    certificate_scope,
    certified_accuracy,
    certified_accuracy_curve,
    certified_accuracy_scorer,
    certify,
    certify_set,
    elect,
)
from exclusivity.robustness.corruption import CorruptionCurve, corrupt, corruption_curve
from exclusivity.robustness.sources import feature_groups_from_transformer
from exclusivity.robustness.words import certify_words

__all__ = [
    "Attack",
    "CorruptionCurve",
    "attack",
    "certificate_scope",
    "certified_accuracy",
    "certified_accuracy_curve",
    "certified_accuracy_scorer",
    "certify",
    "certify_set",
    "certify_words",
    "corrupt",
    "corruption_curve",
    "elect",
    "feature_groups_from_transformer",
]
