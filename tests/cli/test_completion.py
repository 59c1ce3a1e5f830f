"""The completion scripts, asked by the shells themselves."""

import argparse
import re
import shutil
import subprocess

import pytest

from exclusivity.cli import completion
from exclusivity.cli.main import COMMANDS, build_parser, main

WRITERS = {"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}
# What is typed, and what the shell offers for the last word. "data.csv" is the only file of the folder.
ASKED = {
    "erm pre": {"predict"},
    "erm --debug pre": {"predict"},
    "erm --d": {"--debug"},
    "erm fit --vo": {"--voting"},
    "erm fit predict --vo": {"--voting"},  # a file with the name of a command
    "erm fit --voting ": {"soft", "hard", "runoff"},
    "erm completion ": {"bash", "zsh", "fish"},
    "erm --debug completion ": {"bash", "zsh", "fish"},
}
# bash itself falls back to files; the function has nothing to say.
FILES = {"erm fit da": {"data.csv"}, "erm fit --groups da": {"data.csv"}, "erm fit --cost da": set()}


@pytest.fixture(scope="module")
def tree():
    return completion.tree_of(build_parser())


@pytest.fixture(scope="module", params=list(WRITERS))
def answers(request, tree, tmp_path_factory):
    """A shell, and what it offers for each line."""
    shell = request.param
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"needs {shell}")
    folder = tmp_path_factory.mktemp(shell)
    (folder / "data.csv").touch()
    (folder / "_erm").write_text(WRITERS[shell](tree))
    lines = [*ASKED, *FILES]
    ask = {"bash": ask_bash, "zsh": ask_zsh, "fish": ask_fish}[shell]
    return shell, dict(zip(lines, ask(path, folder, lines), strict=True))


def printed(folder, *command):
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, timeout=600)  # noqa: S603
    assert ran.stderr == ""
    return ran.stdout


def ask_bash(path, folder, lines):
    code = ["source ./_erm"]
    for line in lines:
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        code.append(f"COMPREPLY=(); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _erm")
        code.append('printf "%s " "${COMPREPLY[@]}"; echo')
    return [set(row.split()) for row in printed(folder, path, "-c", "\n".join(code)).splitlines()]


def ask_fish(path, folder, lines):
    code = ["source ./_erm", *(f"complete -C '{line}'; echo END" for line in lines)]
    output = printed(folder, path, "--no-config", "-c", "\n".join(code))
    return [{row.split("\t")[0] for row in part.splitlines() if row} for part in output.split("END\n")[:-1]]


# An interactive zsh in a pseudo-terminal: a tab lists the choices below the line, ^U clears the line.
ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "PS1=; PS2=; stty -echo columns 300; fpath=($PWD \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D; bindkey '^I' list-choices"
zpty -w shell "zstyle ':completion:*' force-list always; print -r RE''ADY"
zpty -r -m shell output '*READY*'
for line in "$@"; do
    zpty -n -w shell "$line"$'\t\x15'"print -r EN''D"$'\n'
    zpty -r -m shell output '*END*'
    print -r -- "$output"
done
zpty -d shell
"""


def ask_zsh(path, folder, lines):
    output = printed(folder, path, "-f", "-c", ZSH, "zsh", *lines)
    plain = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "\n", output)
    return [listed_by_zsh(line, part) for line, part in zip(lines, plain.split("END\n")[:-1], strict=True)]


def listed_by_zsh(line, output):
    # The line stands above the list and again below it; where nothing is listed, it stands there once.
    parts = output.split(line.strip())
    listed = parts[1] if len(parts) > 2 else ""
    # One choice a row with its help behind " -- ", or several choices beside each other.
    return {word for row in listed.splitlines() for word in row.split(" -- ")[0].split()}


@pytest.mark.parametrize("line", ASKED)
def test_the_shell_offers(answers, line):
    shell, offered = answers
    # After a space, bash has the options beside the words.
    words = {word for word in offered[line] if not (shell == "bash" and line[-1] == " " and word[0] == "-")}
    assert words == ASKED[line]


@pytest.mark.parametrize("line", FILES)
def test_the_shell_offers_files_where_a_file_may_stand(answers, line):
    shell, offered = answers
    assert offered[line] == (set() if shell == "bash" else FILES[line])


def test_every_option_of_every_command_is_written(tree):
    assert [command.name for command in tree.commands] == list(COMMANDS)
    scripts = {shell: write(tree) for shell, write in WRITERS.items()}
    for command in tree.commands:
        assert all(command.name in script for script in scripts.values())
        for option in command.options:
            long = next(name for name in option.names if name.startswith("--"))
            assert long in scripts["bash"]
            assert long in scripts["zsh"]
            assert f"-l {long[2:]} " in scripts["fish"]


def test_special_characters_of_help_reach_the_reader(tmp_path):
    """Quotes, brackets and colons mean something to zsh and fish."""
    help_text = r"it's [a]: b\c"
    parser = argparse.ArgumentParser("erm")
    parser.add_subparsers().add_parser("fit", help="x").add_argument(
        "--odd", help=help_text, action="store_true"
    )
    tree = completion.tree_of(parser)
    assert f"*--odd[{help_text}]" not in completion.zsh(tree)
    if fish := shutil.which("fish"):
        (tmp_path / "_erm").write_text(completion.fish(tree))
        output = printed(tmp_path, fish, "--no-config", "-c", "source ./_erm; complete -C 'erm fit --o'")
        assert output == f"--odd\t{help_text}\n"
    if zsh := shutil.which("zsh"):
        (tmp_path / "_erm").write_text(completion.zsh(tree))
        assert help_text in printed(tmp_path, zsh, "-f", "-c", ZSH, "zsh", "erm fit --o")


def test_the_zsh_script_may_be_sourced(tree, tmp_path):
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("needs zsh")
    (tmp_path / "script").write_text(completion.zsh(tree))
    code = 'autoload -Uz compinit; compinit -u -D; source ./script; print -r -- "$_comps[erm]"'
    assert printed(tmp_path, zsh, "-f", "-c", code) == "_erm\n"


@pytest.mark.parametrize("shell", list(WRITERS))
def test_the_command_prints_the_script(shell, capsys, tree):
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == WRITERS[shell](tree) + "\n"
