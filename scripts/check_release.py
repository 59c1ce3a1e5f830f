"""Refuse a release whose files do not agree with each other: ``make release-check TAG=v1.2.3``.

The tag, ``__version__``, the newest dated heading of CHANGELOG.md, CITATION.cff and the conda recipe have to
name one version, and readers of PyPI have to be told where the source is. Prints what is wrong, all at once.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

# ruff: noqa: T201 -- a command talks to its user

VERSION_LINES = {
    "src/exclusivity/__init__.py": r'^__version__ = "(.+)"$',
    "CHANGELOG.md": r"^## \[?(\d[\w.]*)\]? [-(]+ ?\d{4}-\d\d-\d\d\)?$",
    "CITATION.cff": r'^version: "?([^"\n]+)"?$',
    "conda/recipe.yaml": r'^  version: "?([^"\n]+)"?$',
}
"""Where a version stands, and how; of several the first counts."""

DATE_LINES = {
    "CHANGELOG.md": r"^## \[?\d[\w.]*\]? [-(]+ ?(\d{4}-\d\d-\d\d)\)?$",
    "CITATION.cff": r'^date-released: "?(\d{4}-\d\d-\d\d)"?$',
}
"""Where the day of the release stands."""


def found(root: Path, lines: dict[str, str]) -> dict[str, str]:
    """Return what each file says, or "nothing"."""
    said = {}
    for name, pattern in lines.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        said[name] = match.group(1) if match else "nothing"
    return said


def problems(root: Path, tag: str) -> list[str]:
    """Everything that speaks against releasing the files below ``root`` as ``tag``."""
    version = tag.removeprefix("v")
    wrong = [] if tag == f"v{version}" else [f"a tag is called v{version}, and not {tag}"]
    for name, said in found(root, VERSION_LINES).items():
        if said != version:
            wrong.append(f"{name} says {said} where the tag says {version}")
    dates = found(root, DATE_LINES)
    if len(set(dates.values())) > 1 or "nothing" in dates.values():
        days = ", ".join(f"{name} says {day}" for name, day in dates.items())
        wrong.append(f"the day of the release: {days}")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if "Source" not in project.get("urls", {}):
        wrong.append("project.urls in pyproject.toml has no Source: say where the repository is")
    return wrong


def main(arguments: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    if len(arguments) != 1 or not arguments[0]:
        print("usage: python scripts/check_release.py TAG (make release-check TAG=v1.2.3)", file=sys.stderr)
        return 2
    wrong = problems(Path(__file__).parent.parent, arguments[0])
    for line in wrong:
        print(f"release {arguments[0]}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
