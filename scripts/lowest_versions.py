"""Print the lowest versions that ``pyproject.toml`` allows, as constraints for pip.

    python scripts/lowest_versions.py > floors.txt
    python -m pip install --editable ".[dev]" --constraint floors.txt

``make test-oldest`` runs the suite with them. Only what is declared is held at its floor; what those packages
need in turn is left to pip. Nothing but the standard library is imported: the environment is still empty.
"""

# ruff: noqa: T201 -- a command talks to its user

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
# name, perhaps [extras], and one floor: nothing else is declared, so nothing else is understood.
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[a-z,]+\])?>=(?P<floor>[0-9]+(\.[0-9]+)*)")


def requirements(project: dict[str, Any]) -> Iterator[str]:
    """All that the project asks for, whatever the extra."""
    yield from project["dependencies"]
    for extra in project["optional-dependencies"].values():
        yield from extra


def lowest_versions(project: dict[str, Any]) -> dict[str, str]:
    """Return the floor of every requirement.

    Raises
    ------
    ValueError
        Where a requirement has no floor, or another one than elsewhere: the lower of two is never tested.
    """
    floors: dict[str, str] = {}
    for requirement in requirements(project):
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} is not of the form name>=version.")
        name, floor = match["name"], match["floor"]
        if floors.setdefault(name, floor) != floor:
            raise ValueError(f"{name} has two floors, {floors[name]} and {floor}.")
    return floors


def main() -> None:
    """Read and print."""
    try:
        floors = lowest_versions(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"])
    except ValueError as error:
        sys.exit(f"{PYPROJECT}: {error}")
    for name, floor in sorted(floors.items()):
        print(f"{name}=={floor}")


if __name__ == "__main__":
    main()
