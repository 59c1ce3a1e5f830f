"""The grid of the router: different problems, measurements that go on where they ended, honest ratios."""

import json
from contextlib import ExitStack

from benchmarks import router
from exclusivity.solvers import factorised, interior, newton


def test_the_grid_has_many_different_problems():
    keys = [case.key for case in router.grid()]
    assert len(keys) == len(set(keys)) >= 150


def test_a_run_goes_on_where_it_ended(tmp_path, capsys):
    out = tmp_path / "router.jsonl"
    command = ["--out", str(out), "--only", "dense 150x10, p=2, C=100", "--limit", "5"]
    router.main([*command, "--methods", "interior"])
    first = out.read_text()
    assert {json.loads(line)["method"] for line in first.splitlines()} == {"default", "interior"}
    assert "1 problems: worst" in capsys.readouterr().out
    router.main(command)
    both = out.read_text()
    assert both.startswith(first)
    assert len(both.splitlines()) == len({json.loads(line)["method"] for line in both.splitlines()}) == 5


def test_a_default_without_a_certificate_is_the_worst_of_all():
    lines = [
        {"case": "a", "method": "default", "seconds": 1.0, "converged": False},
        {"case": "a", "method": "interior", "seconds": 0.5, "converged": True},
    ]
    assert router.ratios(lines)[0].value == float("inf")


def test_every_kind_of_generated_rows_can_be_made():
    made = 0
    for name, make, size, _, _ in router.families():
        if size < 3e4 and not name.startswith(("heart", "australian", "sonar", "german")):  # need files
            X, y = make()
            assert X.shape[0] == len(y), name
            assert set(y.tolist()) == {-1.0, 1.0}, name
            made += 1
    assert made >= 5


def test_data_that_are_not_at_hand_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path))
    router.main(["--out", str(tmp_path / "router.jsonl"), "--only", "australian, p=2"])
    captured = capsys.readouterr()
    assert "nothing has been measured" in captured.out
    assert "without australian" in captured.err


def test_constants_are_scaled_in_every_module_and_put_back(tmp_path, capsys):
    before = newton.MANY_ROWS, newton.DENSE_LIMIT, factorised.DENSE_LIMIT, interior._BACK_OFF
    with ExitStack() as stack:
        for constant in router.CONSTANTS:
            router.scale_constant(stack, constant, 0.5)
        assert (newton.MANY_ROWS, newton.DENSE_LIMIT, factorised.DENSE_LIMIT) == (10_000, 2048, 2048)
        assert (1 + before[-1]) / 2 == interior._BACK_OFF  # what is left to the boundary is halved
        assert newton._SYSTEMS == (6, 20, 200)
    assert before == (newton.MANY_ROWS, newton.DENSE_LIMIT, factorised.DENSE_LIMIT, interior._BACK_OFF)
    out = tmp_path / "constants.jsonl"
    router.main(["--out", str(out), "--only", "dense 150x10, hinge, C=100", "--limit", "5", "--constants"])
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 1 + 2 * len(router.CONSTANTS)
    table = capsys.readouterr().out.splitlines()
    assert len([line for line in table if line.startswith("| `")]) == len(router.CONSTANTS)
    [slack] = [line for line in table if "barrier._FIRST_SLACK" in line]
    assert "none" not in slack  # where an interior point starts decides how many steps it takes
