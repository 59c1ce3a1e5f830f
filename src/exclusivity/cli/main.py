"""Entry point of ``erm``: parse the command line, run a command, turn errors into exit codes.

The codes are those of ``exclusivity.cli.files.EXIT_STATUS``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from textwrap import fill
from typing import Any

from exclusivity import __version__
from exclusivity._text import printable
from exclusivity.cli import files, options

COMMANDS: dict[str, Any] = {
    name: import_module(f"exclusivity.cli.{name}")
    for name in ("fit", "predict", "evaluate", "certify", "check", "inspect", "path", "export", "demo")
}
"""Each module has SUMMARY, DESCRIPTION, ARGUMENTS (as in ``options``) and run(args), and may have an EPILOG.

If it reads files it has INPUTS, and if it writes some it has OUTPUTS (see ``files.check_outputs``). If it has
COMMON, its ``--help`` shows only these arguments, and ``--help-all`` all of them.
"""

_EXAMPLES = """examples:
  erm fit heart.csv --target disease -o heart.erm     train; 'disease' is the column to predict
  erm evaluate heart.erm test.csv                     how good is it on rows that it has not seen?
  erm predict heart.erm new.csv -o predictions.csv    the class of every row of another file

No data at hand: 'erm demo'. All commands: 'erm --help'. One of them: 'erm fit --help'."""


def build_parser(*, show_all: bool = True) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, whose help shows all arguments or the common ones."""
    look: Any = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26)
    parser = argparse.ArgumentParser(
        prog="erm",
        description="Classifiers with a certified optimum, and predictions that survive broken columns.",
        epilog=f"{_EXAMPLES}\n\n{files.EXIT_STATUS}",
        formatter_class=look,
    )
    parser.add_argument("--version", action="version", version=f"erm {__version__}")
    debug = ("--debug", None, None, "show the traceback when a command fails")
    options.add(parser, [debug])
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=fill(module.DESCRIPTION, 79),
            epilog=getattr(module, "EPILOG", None),
            formatter_class=look,
        )
        common = None if show_all else getattr(module, "COMMON", None)
        if hasattr(module, "COMMON"):
            command.add_argument("--help-all", action="help", help="show all options and exit")
        options.add(command, module.ARGUMENTS, common)
        if hasattr(module, "OUTPUTS"):
            command.add_argument("--force", action="store_true", help="replace an output that exists")
        # The default is not to overwrite what stands in front of the command.
        options.add(command, [(*debug, {"default": argparse.SUPPRESS})], common)
        command.usage = _usage(command)
    return parser


def _usage(command: argparse.ArgumentParser) -> str:
    """Return what a command needs; twenty options around it would hide it."""
    formatter = command._get_formatter()
    formatter.add_usage(None, [action for action in command._actions if action.required], [], prefix="")
    return f"{formatter.format_help().strip()} [options]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``erm`` with ``argv`` (default: the process's own) and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv:  # to a person a start, to a script whose variable was empty a mistake
        print(f"usage: erm COMMAND [options]\n\n{_EXAMPLES}", file=sys.stderr)
        return files.USAGE
    if argv[0] == "help":  # 'erm help fit', as other commands have it
        argv = [*argv[1:2], "--help"]
    args = _parse(argv)
    command = COMMANDS[args.command]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            # Columns have been matched by name already, and LIBSVM files have no names.
            warnings.filterwarnings("ignore", "X (does not have valid|has) feature names", UserWarning)
            warnings.showwarning = partial(_show_warning, args.command)
            files.check_outputs(args, command)
            code = command.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("erm: interrupted", file=sys.stderr)
        return files.INTERRUPTED
    except BrokenPipeError:
        # Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return files.PIPE_CLOSED
    except (files.CommandError, ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        if args.debug:
            raise
        reason, code = _explain(error)
        print(f"erm {args.command}: error: {printable(reason, lines=True)}", file=sys.stderr)
        return code
    return files.DONE if code is None else int(code)


def _explain(error: Exception) -> tuple[str, int]:
    """Return what to print for an error, and the exit code; name the option that sets its parameter."""
    if isinstance(error, files.CommandError):
        return str(error), error.exit_code
    option = options.OPTIONS.get(getattr(error, "parameter", ""))
    if option is not None:
        return f"{option}: {error}", files.USAGE
    reason = "not enough memory" if isinstance(error, MemoryError) else str(error)
    return reason or f"failed without a reason ({type(error).__name__})", files.FAILED


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; suggest an option for one that does not exist."""
    parser = build_parser(show_all="--help-all" in argv)
    args, extras = parser.parse_known_args(argv)
    if extras:
        commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
        command = commands[args.command]
        command.error(_unknown(extras[0], list(command._option_string_actions)))
    return args


def _unknown(word: str, known: list[str]) -> str:
    """Return the message for a word that no argument took."""
    if not word.startswith("-"):
        return f"{word!r} is one argument too many (several columns to leave out: --ignore A,B)"
    tried = word.partition("=")[0]
    # A parameter of the library stands for its option.
    option = options.OPTIONS.get(tried.lstrip("-").replace("-", "_"), tried.lower())
    near = difflib.get_close_matches(option, known, 1, cutoff=0.75)
    return f"there is no option {tried}; {f'did you mean {near[0]}?' if near else 'see --help.'}"


def _show_warning(command: str, message: Warning | str, *_: object) -> None:
    print(f"erm {command}: warning: {printable(message, lines=True)}", file=sys.stderr)
