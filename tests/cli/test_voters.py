"""Members that vote: what cannot be certified is said when they are fitted, and again when they are asked."""

import pytest

FIT = ["fit", "train.csv", "--target", "state", "-o", "m.erm", "--folds", 0]


@pytest.mark.parametrize("voting", ["hard", "runoff"])
@pytest.mark.parametrize("command", ["fit", "path"])
def test_equal_members_promise_nothing(erm, voting, command):
    arguments = FIT if command == "fit" else ["path", *FIT[1:-2], "--costs", "1", "--folds", 2]
    code, _, err = erm(*arguments, "--voting", voting)
    assert code == 0
    assert f"--voting {voting} counts the votes of 10 equal members" in err
    assert "Fit with --exclusivity inf" in err
    code, out, err = erm("certify", "m.erm", "test.csv")
    assert code == 0
    assert f"--voting {voting} counts the votes of 10 equal members: one broken feature changes all" in err
    assert out.splitlines()[-1].split()[:2] == ["1", "0"]


def test_an_even_number_ties(erm):
    votes = ["--voting", "hard", "--exclusivity", "inf"]
    _, _, err = erm(*FIT, "--members", 4, *votes)
    assert (
        "4 members may tie, and a tie has no certificate. Fit an odd number of them: --members 3 or 5." in err
    )
    _, out, err = erm("certify", "m.erm", "test.csv")
    assert int(out.splitlines()[1].split()[1]) > 0
    assert "4 members may tie" in err


@pytest.mark.parametrize("options", [["--members", 5], ["--members", 4, "--voting", "soft"]])
def test_nothing_is_said_where_all_is_well(erm, options):
    assert erm(*FIT, "--exclusivity", "inf", "--voting", "hard", "--quiet", *options)[2] == ""
    if "soft" not in options:
        assert erm("certify", "m.erm", "test.csv", "--quiet")[2] == ""


def test_several_classes_tie_whatever_their_number(erm):
    arguments = ["fit", "iris.csv", "--target", "species", "-o", "m.erm", "--members", 4, "--folds", 0]
    _, _, err = erm(*arguments, "--exclusivity", "inf", "--voting", "hard")
    assert "may tie" not in err
