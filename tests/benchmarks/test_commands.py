"""The commands of the benchmarks, as the pages quote them and as somebody types them."""

import os
import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import columns, cost, peers, robustness, solvers
from benchmarks.workloads import WORKLOADS, Workload, class_rows

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "Makefile", *ROOT.glob("benchmarks/*.md"), *ROOT.glob("docs/**/*.md")]


def quoted(page):
    """The commands on a page, those of inline code on one line."""
    text = re.sub(
        r"(?<!`)`[^`]+`(?!`)", lambda code: " ".join(code[0].split()), page.read_text(encoding="utf-8")
    )
    return [found.strip() for found in re.findall(r"python -m benchmarks\.(\w+[^`\n|$;)#]*)", text)]


QUOTED = sorted({command for page in PAGES for command in quoted(page)})


def test_pages_quote_commands():
    assert len(QUOTED) >= 10


@pytest.mark.parametrize("command", QUOTED)
def test_quoted_commands_can_be_run(command):
    name, *words = command.replace("DIR", "d").split()
    assert (ROOT / "benchmarks" / f"{name}.py").is_file()
    if name == "solvers":
        assert solvers.arguments(words).workloads
    elif name == "cost":
        assert {word for word in words if word.isalpha()} <= set(cost.PARTS)
    elif name == "robustness":
        assert words[0] in {*robustness.STUDIES, "STUDY"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fits are measured in forks")
def test_two_solvers_on_small_rows(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(WORKLOADS, "tiny", Workload("40 rows", partial(class_rows, 40, 3, 3)))
    monkeypatch.setitem(WORKLOADS, "gone", Workload("no rows", lambda: Path("/no/such/file").read_text()))
    words = ["--quick", "--only", "tiny,gone", "--peers", "newton,dcd-1", "--limit", "60", "--repeats", "2"]
    solvers.main([*words, "--out", str(tmp_path)])
    out, err = capsys.readouterr()
    assert "| tiny | hinge | 0.2 | 1e-4 |" in out
    assert "without gone:" in err
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert len(runs) == 2 * (4 + 4) * 2
    assert set(runs["status"]) == {"done"}
    page = (tmp_path / "tables.md").read_text()
    assert page.startswith("`python -m benchmarks.solvers --quick --only tiny,gone")
    assert "### 40 rows: squared_hinge, C = 0.2" in page
    assert "by newton, proven to be within" in page
    assert (tmp_path / "tiny-hinge-C0.2.svg").read_text().startswith("<?xml")


def test_peers_by_how_they_begin():
    chosen = solvers.arguments(["--peers", "newton,tron,logistic"]).peers
    assert chosen[:4] == ["newton", "tron-1", "tron-10", "logistic-lbfgs"]
    assert solvers.arguments(["--quick"]).peers == list(peers.QUICK)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--peers", "newtn"], "there is no peer 'newtn'; choose from newton"),
        (["--only", "dens"], "there is no workload 'dens'"),
        (["--loss", "huber"], "there is no loss 'huber'"),
        (["--cost", "much"], "could not convert"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(words, message, capsys):
    with pytest.raises(SystemExit):
        solvers.main(words)
    assert message in capsys.readouterr().err


def test_the_parts_of_the_costs(monkeypatch, capsys):
    def absent(*_):
        """Need a file."""
        return Path("/no/such/file").read_text()

    monkeypatch.setitem(cost.PARTS, "absent", absent)
    cost.main(["search", "absent", "--quick", "--repeats", "1"])
    out, err = capsys.readouterr()
    assert "| p | GridSearchCV(ERMClassifier) | GridSearchCV(LinearSVC) | ERMClassifierCV |" in out
    assert "without absent:" in err
    with pytest.raises(SystemExit):
        cost.main(["memebers"])


def test_studies_go_on_where_they_were_ended(tmp_path):
    file, asked = tmp_path / "records.csv", []

    def study(name, K, split):
        asked.append((name, K, split))
        yield {"system": "learned", "clean": 1.0 * K, **dict.fromkeys(robustness.CERTIFIED, 2.0 * K)}
        yield {"system": "random", "clean": 0.5, **dict.fromkeys(robustness.CERTIFIED, split)}

    robustness.collect(file, [("a", 5, 0)], study)
    frame = robustness.collect(file, [("a", 5, 0), ("b", 9, 1)], study)
    assert asked == [("a", 5, 0), ("b", 9, 1)]
    text = robustness.gains(frame)
    assert "| a | +4.5 | +10.0 | +10.0 | +10.0 | +10.0 | +10.0 |" in text
    assert "| lowest | +4.5 | +10.0 |" in text
    assert "| mean | +6.5 | +13.5 |" in text
    assert "| b | 9 | random | 0.5 ± 0.0 | 1.0 ± 0.0 |" in robustness.whole(frame)


def test_the_better_peer_is_picked_for_each_set_and_losses_come_first():
    frame = pd.DataFrame(
        {"set": name, "family": family, "clean": 1.0, robustness.MEAN: value}
        for name, values in (("a", (9, 1, 2)), ("b", (4, 5, 3)))
        for family, value in zip((columns.ROBUST, *columns.FPA), values, strict=True)
    )
    table = columns.differences(frame.set_index(["set", "family"]), columns.FPA, "clean")
    assert table[robustness.MEAN].to_dict() == {"b": -1, "a": 7}
    assert list(table.index) == ["b", "a"]
    assert list(table["better peer"]) == list(columns.FPA)


def test_sets_that_are_not_at_hand_are_named(monkeypatch, capsys):
    monkeypatch.setenv("EXCLUSIVITY_DATA", "/no/such/folder")
    assert robustness.at_hand("wine", "no such set of keel") == ["wine"]
    assert "without no such set of keel" in capsys.readouterr().err
    assert robustness.cases(["wine"], (5, 9), 2, 2) == [("wine", 5, 0), ("wine", 5, 1)]


def test_a_comparison_from_end_to_end(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(columns, "TRAIN", 80)
    words = ["--sets", "breast cancer", "--families", "robust additive", "additive", "--splits", "1"]
    columns.main([*words, "--csv", str(tmp_path / "columns.csv")])
    out = capsys.readouterr().out
    assert "two classes, plain accuracy: means over 1 sets" in out
    columns.main(["--report", "--csv", str(tmp_path / "columns.csv")])
    assert capsys.readouterr().out == out
