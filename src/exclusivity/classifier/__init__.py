"""The scikit-learn estimators: validate, encode classes, build problems, store results."""

from exclusivity.classifier.ballots import Ballots
from exclusivity.classifier.certainty import DoubtOf
from exclusivity.classifier.certified import CertifiedVotes, check_top_k, radii_of, threats_of, winnable
from exclusivity.classifier.cv import ERMClassifierCV
from exclusivity.classifier.describe import note
from exclusivity.classifier.erm import ERMClassifier
from exclusivity.classifier.fitted import TEST, TRAINING_TOO, Ensemble, FittedState, scope_of
from exclusivity.classifier.fitting import (
    carried_groups,
    exclusive_options,
    fitting_threads,
    former_partition,
    group_codes,
    objective_of,
    problem_seeds,
    warm_starts,
)
from exclusivity.classifier.partition import dealt, given
from exclusivity.classifier.path import ERMPath, erm_path
from exclusivity.classifier.prediction import LinearPredictions, has_probabilities
from exclusivity.classifier.progress import ProblemMonitor
from exclusivity.classifier.radius import UNDECIDED, grouped
from exclusivity.classifier.rankings import Rankings
from exclusivity.classifier.search import SearchState
from exclusivity.classifier.stored import StoredPoint
from exclusivity.classifier.training import (
    MINIMISED,
    NO_WEIGHT,
    VOTINGS,
    BinaryTask,
    ClassWeight,
    RandomState,
    TrainingSet,
    binary_tasks,
    check_choice,
    check_number,
    check_parameters,
    check_scale,
    checked_weights,
    class_weights,
    contrasts,
    require_labels,
    require_two_classes,
    sample_weights,
    shared_parameters,
    training_set,
)
from exclusivity.classifier.voting import class_scores, finite, soft_decision, winning_codes

__all__ = [
    "MINIMISED",
    "NO_WEIGHT",
    "TEST",
    "TRAINING_TOO",
    "UNDECIDED",
    "VOTINGS",
    "Ballots",
    "BinaryTask",
    "CertifiedVotes",
    "ClassWeight",
    "DoubtOf",
    "ERMClassifier",
    "ERMClassifierCV",
    "ERMPath",
    "Ensemble",
    "FittedState",
    "LinearPredictions",
    "ProblemMonitor",
    "RandomState",
    "Rankings",
    "SearchState",
    "StoredPoint",
    "TrainingSet",
    "binary_tasks",
    "carried_groups",
    "check_choice",
    "check_number",
    "check_parameters",
    "check_scale",
    "check_top_k",
    "checked_weights",
    "class_scores",
    "class_weights",
    "contrasts",
    "dealt",
    "erm_path",
    "exclusive_options",
    "finite",
    "fitting_threads",
    "former_partition",
    "given",
    "group_codes",
    "grouped",
    "has_probabilities",
    "note",
    "objective_of",
    "problem_seeds",
    "radii_of",
    "require_labels",
    "require_two_classes",
    "sample_weights",
    "scope_of",
    "shared_parameters",
    "soft_decision",
    "threats_of",
    "training_set",
    "warm_starts",
    "winnable",
    "winning_codes",
]
