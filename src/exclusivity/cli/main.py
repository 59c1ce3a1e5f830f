"""Entry point of ``erm``: parses the command line, runs a command, turns errors into exit codes.

0: done. 1: the command failed, the reason is on standard error. 2: the command line was wrong.
130: interrupted with Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from exclusivity import __version__
from exclusivity.cli import bench, demo, reproduce
from exclusivity.cli.errors import CommandError

FAILED, INTERRUPTED = 1, 130

COMMANDS = {"bench": bench, "demo": demo, "reproduce": reproduce}


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="erm",
        description="Ensembles of linear SVMs whose members are kept apart by the exclusivity regulariser.",
        epilog="'erm COMMAND --help' explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"erm {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback when a command fails")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        module.configure(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``erm`` with ``argv`` (default: the process's own) and return its exit code."""
    args = build_parser().parse_args(argv)
    try:
        COMMANDS[args.command].run(args)
    except KeyboardInterrupt:
        print("erm: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (CommandError, ValueError, OSError) as error:
        if args.debug:
            raise
        print(f"erm {args.command}: error: {error}", file=sys.stderr)
        return FAILED
    return 0
