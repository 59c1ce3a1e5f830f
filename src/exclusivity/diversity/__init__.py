"""How different the members of an ensemble are, for our classifier and for any fitted ensemble."""

from exclusivity.diversity.agreement import interrater_kappa, pairwise_kappa
from exclusivity.diversity.correctness import (
    pairwise_correlation,
    pairwise_disagreement,
    pairwise_double_fault,
    pairwise_q_statistic,
)
from exclusivity.diversity.decompositions import (
    BiasVarianceCovariance,
    ErrorAmbiguity,
    bias_variance_covariance,
    error_ambiguity,
)
from exclusivity.diversity.ensembles import Members as Members, members_of as members_of
from exclusivity.diversity.labels import (
    label_codes as label_codes,
    prediction_matrix as prediction_matrix,
    truth_vector as truth_vector,
)
from exclusivity.diversity.members import member_predictions, member_weights
from exclusivity.diversity.pairs import mean_over_pairs
from exclusivity.diversity.report import DiversityReport, diversity_report
from exclusivity.diversity.strength import StrengthCorrelation, raw_margins, strength_correlation
from exclusivity.diversity.weights import (
    mutual_angular,
    pairwise_angle,
    pairwise_exclusivity,
    pairwise_relaxed_exclusivity,
)

__all__ = [
    "BiasVarianceCovariance",
    "DiversityReport",
    "ErrorAmbiguity",
    "StrengthCorrelation",
    "bias_variance_covariance",
    "diversity_report",
    "error_ambiguity",
    "interrater_kappa",
    "mean_over_pairs",
    "member_predictions",
    "member_weights",
    "mutual_angular",
    "pairwise_angle",
    "pairwise_correlation",
    "pairwise_disagreement",
    "pairwise_double_fault",
    "pairwise_exclusivity",
    "pairwise_kappa",
    "pairwise_q_statistic",
    "pairwise_relaxed_exclusivity",
    "raw_margins",
    "strength_correlation",
]
