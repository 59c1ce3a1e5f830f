"""Entry point of ``erm``: parses the command line, runs a command, turns errors into exit codes.

The codes are those of ``exclusivity.cli.errors.EXIT_STATUS``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from exclusivity import __version__
from exclusivity._text import printable
from exclusivity.cli import (
    certify,
    demo,
    evaluate,
    export,
    fit,
    inspect,
    overwriting,
    path,
    predict,
    wording,
)
from exclusivity.cli.errors import DONE, EXIT_STATUS, FAILED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandError

COMMANDS = {
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "certify": certify,
    "inspect": inspect,
    "path": path,
    "export": export,
    "demo": demo,
}
"""Each module has SUMMARY, DESCRIPTION, configure(parser) and run(args), and may have an EPILOG.

Where it reads files it has INPUTS, and where it writes some it has OUTPUTS (see ``overwriting``).
"""

_EPILOG = f"""'erm COMMAND --help' explains a command.

examples:
  erm fit heart.csv --target disease -o heart.erm     train, scale and store
  erm evaluate heart.erm test.csv                     how good is it?
  erm predict heart.erm new.csv -o predictions.csv    use it
  erm inspect heart.erm --html report.html            what is in it?

{EXIT_STATUS}"""


_WELCOME = """erm trains linear SVMs, and votes of them that survive broken features, on tables as they come.

  erm fit heart.csv --target disease -o heart.erm     train; 'disease' is the column to predict
  erm evaluate heart.erm test.csv                     how good is it on rows that it has not seen?
  erm predict heart.erm new.csv -o predictions.csv    the class of every row of another file

No data at hand: 'erm demo'. All commands: 'erm --help'. One of them: 'erm fit --help'."""


_FORCE_HELP = (
    "replace an output that exists, whatever it is (default: only what this command wrote before; never what "
    "it reads)"
)


class _Parser(argparse.ArgumentParser):
    """Errors that show how it is done."""

    def error(self, message: str) -> NoReturn:
        """Say what is missing with an example, and which command may have been meant."""
        examples = (self.epilog or "").partition("examples:\n")[2].splitlines()
        if "arguments are required" in message and examples:
            message += f" (for example: {examples[0].strip()})"
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if unknown:
            message = (
                f"there is no command {unknown[1]!r}; {wording.command_meant(unknown[1], list(COMMANDS))}"
            )
        super().error(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; descriptions are wrapped all the same."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="erm",
        description="Ensembles of linear SVMs whose members are kept apart by the exclusivity regulariser.",
        epilog=_EPILOG,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"erm {__version__}")
    debug_help = "show the traceback when a command fails"
    parser.add_argument("--debug", action="store_true", help=debug_help)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=getattr(module, "EPILOG", None),
            formatter_class=_Help,
        )
        module.configure(command)
        if hasattr(module, "OUTPUTS"):
            command.add_argument("--force", action="store_true", help=_FORCE_HELP)
        # Not to overwrite what stands in front of the command.
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=debug_help)
        command.usage = _usage(command)
    return parser


def _usage(command: argparse.ArgumentParser) -> str:
    """What a command cannot do without; twenty options around it would hide it."""
    formatter = command._get_formatter()
    formatter.add_usage(None, [action for action in command._actions if action.required], [], prefix="")
    return f"{formatter.format_help().strip()} [options]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``erm`` with ``argv`` (default: the process's own) and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv:  # to a person a start, to a script whose variable was empty a mistake
        print(_WELCOME, file=sys.stderr)
        return USAGE
    if argv[0] == "help":  # 'erm help fit', as other commands have it
        argv = [*argv[1:2], "--help"]
    args = _parsed(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning(args.command)
            command = COMMANDS[args.command]
            overwriting.check(args, command)
            code = command.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("erm: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (CommandError, ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        if args.debug:
            raise
        silent = "not enough memory" if isinstance(error, MemoryError) else "it failed without a reason"
        reason = str(error) if isinstance(error, CommandError) else wording.in_options(str(error))
        reason = reason or f"{silent} ({type(error).__name__})"
        print(f"erm {args.command}: error: {printable(reason, lines=True)}", file=sys.stderr)
        return error.exit_code if isinstance(error, CommandError) else FAILED
    return DONE if code is None else code


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; what nobody takes is an error that says what may have been meant."""
    parser = build_parser()
    args, extras = parser.parse_known_args(argv)
    if extras:
        commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
        commands[args.command].error(wording.unknown_option(extras, args.command, dict(commands)))
    return args


def _show_warning(command: str) -> Callable[..., None]:
    def show(message: Warning | str, *_: object) -> None:
        text = printable(wording.in_options(str(message)), lines=True)
        print(f"erm {command}: warning: {text}", file=sys.stderr)

    return show
