"""The floors of pyproject.toml, as ``make test-oldest`` installs them."""

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "lowest_versions.py"))


def test_every_requirement_has_one_floor():
    floors = SCRIPT["lowest_versions"](PROJECT)
    declared = {name for name in floors if any(line.startswith(name) for line in PROJECT["dependencies"])}
    assert declared == {"numpy", "scipy", "scikit-learn"}
    # By other means than the script's: cut at the first character that ends a name.
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    assert set(floors) == {line.split(">")[0].split("[")[0] for line in asked}
    assert all(any(line.endswith(f">={floor}") for line in asked) for floor in floors.values())


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["numpy>=2"], "numpy has two floors, 1.26 and 2"),
        (["rich"], "'rich' is not of the form"),
        (["rich>=13,<14"], "is not of the form"),
        (["rich==13"], "is not of the form"),
    ],
)
def test_a_floor_that_cannot_be_tried_is_refused(extra, message):
    project = {"dependencies": ["numpy>=1.26"], "optional-dependencies": {"some": extra}}
    with pytest.raises(ValueError, match=message):
        SCRIPT["lowest_versions"](project)


def test_extras_do_not_hide_a_floor():
    project = {"dependencies": [], "optional-dependencies": {"dask": ["dask[array,dataframe]>=2024.8.0"]}}
    assert SCRIPT["lowest_versions"](project) == {"dask": "2024.8.0"}
