"""The day of docs/production.md on its three tables: what it names, and what it proves to stand."""

import csv
import json
import re
from pathlib import Path

import pytest

from exclusivity.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
ROBUST = ["--max-broken", "2"]
VOTE = ["--voting", "hard", "--exclusivity", "inf", "--members", "7", "--additive"]
DAYS = {
    "heart": ("disease", ["serum_cholesterol", "resting_blood_pressure", "max_heart_rate"]),
    "cancer": ("kind", ["mean radius", "worst area", "mean texture"]),
    "wine": ("maker", ["ash", "proline", "hue"]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that the first snippet of the page writes."""
    folder = tmp_path_factory.mktemp("day")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        snippet = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
        exec(compile(snippet, "production.md", "exec"), {})  # noqa: S102 -- our own page
    return folder


@pytest.fixture
def erm(files, monkeypatch, capsys):
    """Run commands among them; gives output and errors."""
    monkeypatch.chdir(files)

    def run(*argv):
        capsys.readouterr()
        assert main([*argv, "--quiet"]) == 0
        return capsys.readouterr()

    return run


def column(path, name):
    with open(path, newline="") as stream:
        return [row[name] for row in csv.DictReader(stream)]


@pytest.mark.parametrize("name", DAYS)
def test_commands_name_the_columns_and_prove_what_stands(erm, name):
    target, (gone, unit, text) = DAYS[name]
    erm("fit", f"{name}-train.csv", "--target", target, *ROBUST, "--folds", "0", "-o", f"{name}.erm")
    erm("predict", f"{name}.erm", f"{name}-monday.csv", "-o", f"{name}-right.csv")
    out, err = erm("predict", f"{name}.erm", f"{name}-tuesday.csv")
    assert f"lacks {gone!r}; all its cells count as missing values" in err
    assert re.search(rf"column {text!r} of .*: \d+ texts taken for missing values", err)
    assert len(out.splitlines()) == 1 + len(column(f"{name}-tuesday.csv", target))
    checked = erm("check", f"{name}.erm", f"{name}-tuesday.csv", "--json", "-o", f"{name}-stands.csv").out
    document = json.loads(checked)
    assert set(document["not_relied_on"]) == {gone, unit, text}
    notes = {row["column"]: row["note"] for row in document["columns"]}
    assert "100.0% outside the range of training" in notes[unit]
    before = column(f"{name}-right.csv", "label")
    after, stands = (column(f"{name}-stands.csv", key) for key in ("label", "stands"))
    kept = [i for i, stand in enumerate(stands) if stand == "True"]
    assert len(kept) >= 0.4 * len(after)
    assert all(before[i] == after[i] for i in kept)


@pytest.mark.parametrize("name", DAYS)
def test_a_vote_and_a_linear_model_of_a_table_go_on_too(erm, name):
    target, (gone, _, text) = DAYS[name]
    fit = ["fit", f"{name}-train.csv", "--target", target, "--folds", "0", "--force", "-o", f"{name}-2.erm"]
    for options in (["--additive"], VOTE):
        erm(*fit, *options)
        _, err = erm("evaluate", f"{name}-2.erm", f"{name}-tuesday.csv")
        assert f"lacks {gone!r}" in err
        assert f"column {text!r}" in err
    monday, tuesday = (
        json.loads(erm("certify", f"{name}-2.erm", f"{name}-{day}.csv", "--json").out)
        for day in ("monday", "tuesday")
    )
    assert monday["rows"] == tuesday["rows"]


def test_a_model_of_plain_numbers_says_which_models_go_on(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["fit", "wine-train.csv", "--target", "maker", "--folds", "0", "-q", "-o", "plain.erm"]) == 0
    assert main(["predict", "plain.erm", "wine-tuesday.csv"]) == 3
    assert "fit with --max-broken or --additive" in capsys.readouterr().err


@pytest.mark.parametrize("line", re.findall(r"^erm: .*$", PAGE, re.MULTILINE))
def test_lines_of_the_page(erm, line):
    erm("fit", "heart-train.csv", "--target", "disease", *ROBUST, "--folds", "0", "--force", "-o", "page.erm")
    assert line in erm("check", "page.erm", "heart-tuesday.csv").err
