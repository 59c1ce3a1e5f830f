"""The scikit-learn estimators: validate, encode classes, build problems, store results."""

from exclusivity.classifier.cv import ERMClassifierCV
from exclusivity.classifier.describe import note
from exclusivity.classifier.erm import ERMClassifier
from exclusivity.classifier.fitted import TEST, TRAINING_IF, TRAINING_TOO, Ensemble, FittedState, scope_of
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
from exclusivity.classifier.parameters import MINIMISED, ClassWeight, RandomState, shared_parameters
from exclusivity.classifier.partition import dealt, given
from exclusivity.classifier.path import ERMPath, erm_path
from exclusivity.classifier.prediction import LinearPredictions, has_probabilities, probabilities_of
from exclusivity.classifier.progress import ProblemMonitor
from exclusivity.classifier.refitting import fitted_attributes, replace_fitted, snapshot
from exclusivity.classifier.search import SearchState
from exclusivity.classifier.stored import StoredPoint
from exclusivity.classifier.training import (
    NO_WEIGHT,
    BinaryTask,
    TrainingSet,
    binary_tasks,
    check_jobs,
    check_parameters,
    check_scale,
    checked_weights,
    class_weights,
    contrasts,
    require_labels,
    require_two_classes,
    sample_weights,
    table_advice,
    training_set,
)

__all__ = [
    "MINIMISED",
    "NO_WEIGHT",
    "TEST",
    "TRAINING_IF",
    "TRAINING_TOO",
    "BinaryTask",
    "ClassWeight",
    "ERMClassifier",
    "ERMClassifierCV",
    "ERMPath",
    "Ensemble",
    "FittedState",
    "LinearPredictions",
    "ProblemMonitor",
    "RandomState",
    "SearchState",
    "StoredPoint",
    "TrainingSet",
    "binary_tasks",
    "carried_groups",
    "check_jobs",
    "check_parameters",
    "check_scale",
    "checked_weights",
    "class_weights",
    "contrasts",
    "dealt",
    "erm_path",
    "exclusive_options",
    "fitted_attributes",
    "fitting_threads",
    "former_partition",
    "given",
    "group_codes",
    "has_probabilities",
    "note",
    "objective_of",
    "probabilities_of",
    "problem_seeds",
    "replace_fitted",
    "require_labels",
    "require_two_classes",
    "sample_weights",
    "scope_of",
    "shared_parameters",
    "snapshot",
    "table_advice",
    "training_set",
    "warm_starts",
]
