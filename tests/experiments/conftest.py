"""One small run of everything, shared by the tests that read its results."""

import pytest

from exclusivity.experiments import Settings, reproduce, write_study
from experiments.experiment_cases import toy_collection


@pytest.fixture(scope="session")
def small_study(tmp_path_factory):
    """(study, folder) of all parts on made-up data, with one set of Table 1 and ijcnn1 missing."""
    out = tmp_path_factory.mktemp("study")
    collection = toy_collection("sonar", "heart", missing=("australian", "ijcnn1"))
    study = reproduce(Settings(trials=2, quick=True), collection, out)
    write_study(study, out)
    return study, out
