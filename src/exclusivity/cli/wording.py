"""What the library says, in the words of the command line: options instead of parameters."""

from __future__ import annotations

import argparse
import difflib
import re

PARAMETERS = {
    "n_estimators": "members",
    "loss": "loss",
    "p": "p",
    "exclusivity": "exclusivity",
    "sparsity": "sparsity",
    "voting": "voting",
    "solver": "solver",
    "tol": "tol",
    "max_iter": "max_iter",
    "multi_class": "multi_class",
    "random_state": "seed",
    "n_jobs": "jobs",
}
"""Parameters of a classifier that are options of the same meaning: their names here and there."""

_OPTIONS = {
    **{name: "--" + option.replace("_", "-") for name, option in PARAMETERS.items()},
    "feature_groups": "--groups",
    "coef_bounds": "--bounds",
    "monotonic_cst": "--monotonic",
    "class_weight": "--class-weight",
    "Cs": "--costs",
    "C": "--cost",
    "cv": "--folds",
    "fit_intercept": "--no-intercept",
}
_NOT_WORTH_A_WORD = ("verbose", "warm_start")


def as_options(parameters: dict[str, object], usual: dict[str, object]) -> str:
    """Parameters as somebody would write them on the command line; those that are no options by their names.

    Parameters
    ----------
    parameters : dict
        Of a fitted model.
    usual : dict
        Defaults, of parameters that are no options: these are shown where they differ.

    Examples
    --------
    >>> as_options({"C": 2.0, "n_estimators": 9, "fit_intercept": True, "partition": "random"}, {})
    "--cost 2 --members 9, partition='random'"
    """
    options, others = [], []
    for name, value in parameters.items():
        if value is None or name in _NOT_WORTH_A_WORD:
            continue
        if name == "fit_intercept":
            options += [] if value else ["--no-intercept"]
        elif name in _OPTIONS and isinstance(value, (str, int, float)):
            options.append(f"{_OPTIONS[name]} {value if isinstance(value, str) else format(value, 'g')}")
        elif name not in usual or usual[name] != value:
            text = repr(value)
            others.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(filter(None, [" ".join(options), *others]))


# Words of prose too: these are parameters only where a value is given to them (or a larger C is advised).
_PROSE = {"loss", "p", "exclusivity", "sparsity", "voting", "solver", "C"}
_BARE = "|".join(sorted(set(_OPTIONS) - _PROSE, key=len, reverse=True))
_ANY = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_VALUE = r"'[^']*'|\"[^\"]*\"|np\.inf|[-+.\w]+"


def command_meant(tried: str, commands: list[str]) -> str:
    """Which command somebody may have meant.

    Examples
    --------
    >>> command_meant("predcit", ["fit", "predict"]), command_meant("train", ["fit", "predict"])
    ("did you mean 'erm predict'?", 'there are fit, predict.')
    """
    near = difflib.get_close_matches(tried.lower(), commands, n=1)
    return f"did you mean 'erm {near[0]}'?" if near else f"there are {', '.join(commands)}."


def in_options(message: str) -> str:
    """A message of the library for somebody who has options and no parameters.

    Examples
    --------
    >>> in_options("2 members abstain. Set n_estimators to 3 or less, or exclusivity=np.inf.")
    '2 members abstain. Set --members to 3 or less, or --exclusivity inf.'
    """
    message = re.sub(rf"leave ({_ANY})(?: |=)None", lambda found: f"leave {_OPTIONS[found[1]]} out", message)
    message = re.sub(
        rf"(?<![\w'\"-])({_ANY})=({_VALUE})(?: or '(\w+)')?",
        lambda found: _assigned(*found.groups()),
        message,
    )
    message = re.sub(r"\b(larger|smaller) C\b", rf"\1 {_OPTIONS['C']}", message)
    message = re.sub(rf"(?<![\w'\"-])({_BARE})(?![\w'\"=])", lambda found: _OPTIONS[found[1]], message)
    return message.replace("StandardScaler", "--scale standard").replace("MaxAbsScaler", "--scale minmax")


def _assigned(name: str, value: str, other: str | None) -> str:
    value = value.strip("'\"").replace("np.inf", "inf")
    # A full stop that ends the sentence is no digit.
    stop = "." if value.endswith(".") else ""
    if name == "fit_intercept":
        return _OPTIONS[name] + stop
    return f"{_OPTIONS[name]} {value.removesuffix('.')}" + ("" if other is None else f" or {other}") + stop


def unknown_option(extras: list[str], command: str, parsers: dict[str, argparse.ArgumentParser]) -> str:
    """The error for words that no argument took, with what may have been meant.

    Parameters
    ----------
    extras : list of str
        As ``parse_known_args`` gives them.
    command : str
    parsers : dict of ArgumentParser
        All commands.
    """
    first = next((word for word in extras if re.match(r"--?[A-Za-z]", word)), None)
    if first is None:
        ignores = "--ignore" in parsers[command]._option_string_actions
        each = " (several columns to leave out: --ignore A --ignore B)" * ignores
        return f"{extras[0]!r} is one argument too many{each}; 'erm {command} --help' lists them."
    tried = first.partition("=")[0] if first.startswith("--") else first[:2]
    return f"there is no option {tried}; {_meant(tried, command, parsers)}"


def _meant(tried: str, command: str, parsers: dict[str, argparse.ArgumentParser]) -> str:
    options = {name: list(parser._option_string_actions) for name, parser in parsers.items()}
    plain = tried.lower().replace("_", "-")
    parameter = _OPTIONS.get(tried.lstrip("-").replace("-", "_"))
    if parameter in options[command]:
        return f"did you mean {parameter}?"
    others = [name for name, strings in options.items() if plain in strings and name != command]
    if others:
        return f"it is one of 'erm {others[0]}'."
    near = difflib.get_close_matches(plain, options[command], n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"'erm {command} --help' lists them."
