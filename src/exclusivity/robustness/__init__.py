"""Predictions that survive broken features: certificates, damage, an adversary, and the choice of members."""

from exclusivity.robustness.adversary import Attack, attack
from exclusivity.robustness.certificates import (
    certificate_scope,
    certified_accuracy,
    certified_accuracy_curve,
    certify,
    certify_set,
    elect,
)
from exclusivity.robustness.corruption import CorruptionCurve, corrupt, corruption_curve
from exclusivity.robustness.labels import feature_groups_from_names, feature_groups_from_transformer
from exclusivity.robustness.selection import MemberChoice, choose_members

__all__ = [
    "Attack",
    "CorruptionCurve",
    "MemberChoice",
    "attack",
    "certificate_scope",
    "certified_accuracy",
    "certified_accuracy_curve",
    "certify",
    "certify_set",
    "choose_members",
    "corrupt",
    "corruption_curve",
    "elect",
    "feature_groups_from_names",
    "feature_groups_from_transformer",
]
