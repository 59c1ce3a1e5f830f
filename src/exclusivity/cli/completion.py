"""``erm completion``: completion for shells, from the same tree of arguments that parses the command line."""

from __future__ import annotations

import argparse
import re
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
    print(writers[args.shell](tree_of(build_parser())))


@dataclass(frozen=True)
class Option:
    """One option: its spellings, its choices, whether it takes a value or a file's name, and its help."""

    names: tuple[str, ...]
    choices: tuple[str, ...]
    takes_value: bool
    takes_file: bool
    help: str


@dataclass(frozen=True)
class Command:
    """One command: its name, its help, its options, and the choices of its arguments."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """The command line: the options that stand before the command, and the commands."""

    options: tuple[Option, ...]
    commands: tuple[Command, ...]


def tree_of(parser: argparse.ArgumentParser) -> Tree:
    """The tree of arguments as plain data."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {action.dest: action.help or "" for action in subparsers._choices_actions}
    commands = (_command(name, summaries[name], subparser) for name, subparser in subparsers.choices.items())
    return Tree(_options(parser), tuple(commands))


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> Command:
    words = [_choices(action) for action in parser._actions if not action.option_strings]
    return Command(name, summary, _options(parser), sum(words, start=()))


def _options(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    return tuple(_option(action) for action in parser._actions if action.option_strings)


def _option(action: argparse.Action) -> Option:
    choices = _choices(action)
    takes_value = action.nargs != 0
    # What is converted is a number; what stays a string without choices may be a file's name.
    takes_file = takes_value and not choices and action.type is None
    help_text = " ".join((action.help or "").split())
    return Option(tuple(action.option_strings), choices, takes_value, takes_file, help_text)


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(choice) for choice in action.choices or ())


def bash(tree: Tree) -> str:
    """A script for bash: options after a dash, choices after their option, files elsewhere."""
    cases, values = [], []
    for command in tree.commands:
        words = [*_spellings(command.options), *command.words]
        cases.append(f'    {command.name}) words="{" ".join(words)}" ;;')
        values += [
            f'    "{command.name} {name}") {_reply(option.choices)}; return ;;'
            for option in command.options
            if option.choices
            for name in option.names
        ]
    with_words = [command.name for command in tree.commands if command.words]
    first = [*(command.name for command in tree.commands), *_spellings(tree.options)]
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
            f"    {_reply(first)}",
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


def _spellings(options: Iterable[Option]) -> list[str]:
    return [name for option in options for name in option.names]


def zsh(tree: Tree) -> str:
    """A script for zsh, to be found in ``fpath`` or sourced after ``compinit``."""
    first = " ".join(_quoted(_zsh_option(name, option)) for option in tree.options for name in option.names)
    lines = ["#compdef erm", "_erm() {", "  local -a commands", "  commands=("]
    lines += [f"    {_quoted(f'{command.name}:{command.help}')}" for command in tree.commands]
    # "*::" hands over to the state with words and CURRENT counted from the command.
    lines += ["  )", "  local curcontext=$curcontext context state state_descr line", "  typeset -A opt_args"]
    lines += [f"  _arguments -C {first} '1:command:->command' '*::argument:->argument' && return"]
    lines += ["  if [[ $state == command ]]; then", "    _describe command commands", "    return", "  fi"]
    lines += ['  case "$line[1]" in']
    for command in tree.commands:
        specs = [_zsh_option(name, option) for option in command.options for name in option.names]
        rest = f"*:argument:({' '.join(command.words)})" if command.words else "*:file:_files"
        lines.append(f"    {command.name}) _arguments {' '.join(map(_quoted, [*specs, rest]))} ;;")
    # Found in fpath, this file is the body of _erm and runs when a completion is asked for.
    ending = 'if [[ "$funcstack[1]" == _erm ]]; then _erm "$@"; else compdef _erm erm; fi'
    return "\n".join([*lines, "  esac", "}", ending])


def _zsh_option(name: str, option: Option) -> str:
    described = re.sub(r"[][:\\]", r"\\\g<0>", option.help)
    spec = f"*{name}[{described}]"
    if not option.takes_value:
        return spec
    values = f"({' '.join(option.choices)})" if option.choices else "_files" * option.takes_file or " "
    return f"{spec}:value:{values}"


_FISH_COMMAND = """# Whether the first word that is no option is the one given, or whether there is none yet.
function __erm_command
    for word in (commandline -opc)[2..]
        if not string match -q -- '-*' $word
            test "$word" = "$argv[1]"
            return
        end
    end
    test -z "$argv[1]"
end"""


def fish(tree: Tree) -> str:
    """A script for fish."""
    lines = ["# fish completion for erm", _FISH_COMMAND]
    lines += [f"complete -c erm -n __erm_command {_fish_option(option)}" for option in tree.options]
    for command in tree.commands:
        help_text = _fish_quoted(command.help)
        lines.append(f"complete -c erm -n __erm_command -f -a {command.name} -d {help_text}")
        seen = f"-n '__erm_command {command.name}'"
        if command.words:
            lines.append(f"complete -c erm {seen} -f -a {_fish_quoted(' '.join(command.words))}")
        lines += [f"complete -c erm {seen} {_fish_option(option)}" for option in command.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    if option.choices:
        names.append(f"-x -a {_fish_quoted(' '.join(option.choices))}")
    elif option.takes_value:
        names.append("-r -F" if option.takes_file else "-x")
    return " ".join([*names, "-d", _fish_quoted(option.help)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
