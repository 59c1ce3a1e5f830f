"""``erm completion``: completion for shells, from the same tree of arguments that parses the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

SUMMARY = "print a completion script for bash, zsh or fish"
DESCRIPTION = "Prints a script that teaches a shell to complete the commands and options of erm."
EPILOG = """examples:
  erm completion bash > ~/.local/share/bash-completion/completions/erm
  erm completion zsh > "${fpath[1]}/_erm"
  erm completion fish > ~/.config/fish/completions/erm.fish"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    from exclusivity.cli.main import build_parser

    writers = {"bash": bash, "zsh": zsh, "fish": fish}
    print(writers[args.shell](commands_of(build_parser())))


@dataclass(frozen=True)
class Option:
    """One option: its spellings, its choices, whether it takes a value, and its help."""

    names: tuple[str, ...]
    choices: tuple[str, ...]
    takes_value: bool
    help: str


@dataclass(frozen=True)
class Command:
    """One command: its name, its help, its options, and the choices of its arguments."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """The tree of arguments as plain data."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {action.dest: action.help or "" for action in subparsers._choices_actions}
    return [_command(name, summaries[name], subparser) for name, subparser in subparsers.choices.items()]


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(str(choice) for choice in action.choices or ())
        if action.option_strings:
            help_text = " ".join((action.help or "").split())
            options.append(Option(tuple(action.option_strings), choices, action.nargs != 0, help_text))
        else:
            words += choices
    return Command(name, summary, tuple(options), tuple(words))


def bash(commands: list[Command]) -> str:
    """A script for bash: options after a dash, choices after their option, files elsewhere."""
    cases, values = [], []
    for command in commands:
        words = [name for option in command.options for name in option.names] + list(command.words)
        cases.append(f'    {command.name}) words="{" ".join(words)}" ;;')
        values += [
            f'    "{command.name} {name}") {_reply(option.choices)}; return ;;'
            for option in command.options
            if option.choices
            for name in option.names
        ]
    with_words = [command.name for command in commands if command.words]
    return "\n".join(
        [
            "# bash completion for erm",
            "_erm() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" words=""',
            "  local i",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            '    [[ "${COMP_WORDS[i]}" != -* ]] && { command="${COMP_WORDS[i]}"; break; }',
            "  done",
            '  if [[ -z "$command" ]]; then',
            f"    {_reply([*(command.name for command in commands), '--help', '--version'])}",
            "    return",
            "  fi",
            '  case "$command $prev" in',
            *values,
            "  esac",
            '  case "$command" in',
            *cases,
            "  esac",
            f'  if [[ "$cur" == -* || " {" ".join(with_words)} " == *" $command "* ]]; then',
            '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "  fi",
            "}",
            "complete -o default -F _erm erm",
        ]
    )


def _reply(words: Iterable[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"))'


def zsh(commands: list[Command]) -> str:
    """A script for zsh."""
    lines = ["#compdef erm", "_erm() {", "  local -a commands", "  commands=("]
    lines += [f"    {_quoted(f'{command.name}:{command.help}')}" for command in commands]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe command commands", "    return", "  fi"]
    lines += ["  local command=$words[2]", "  shift words", "  (( CURRENT-- ))", '  case "$command" in']
    for command in commands:
        specs = [_zsh_option(name, option) for option in command.options for name in option.names]
        rest = f"*:argument:({' '.join(command.words)})" if command.words else "*:file:_files"
        lines.append(f"    {command.name}) _arguments {' '.join(map(_quoted, [*specs, rest]))} ;;")
    return "\n".join([*lines, "  esac", "}", '_erm "$@"'])


def _zsh_option(name: str, option: Option) -> str:
    described = option.help.translate(str.maketrans("[]:", "(),"))
    spec = f"*{name}[{described}]"
    if not option.takes_value:
        return spec
    return f"{spec}:value:({' '.join(option.choices)})" if option.choices else f"{spec}:value:_files"


def fish(commands: list[Command]) -> str:
    """A script for fish."""
    lines = ["# fish completion for erm"]
    for command in commands:
        help_text = _fish_quoted(command.help)
        lines.append(f"complete -c erm -n __fish_use_subcommand -f -a {command.name} -d {help_text}")
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c erm {seen} -f -a {_fish_quoted(' '.join(command.words))}")
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
            )
            value = (
                f" -x -a {_fish_quoted(' '.join(option.choices))}"
                if option.choices
                else " -r" * option.takes_value
            )
            lines.append(f"complete -c erm {seen} {names}{value} -d {_fish_quoted(option.help)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
