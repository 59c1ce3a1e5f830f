"""A folder with data and models, as a user of ``erm`` would have it."""

import csv

import numpy as np
import pytest
from sklearn.datasets import load_iris

from exclusivity.cli.main import main

VOTES = ["--exclusivity", "inf", "--voting", "hard"]
NAMES = ["a b", "c", "d", "e", "f", "g"]


def write_csv(path, X, y=None, names=NAMES, target="state", extra=None):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        front = [] if extra is None else ["row"]
        writer.writerow([*front, *names, *([] if y is None else [target])])
        for i, row in enumerate(X.tolist()):
            front = [] if extra is None else [f"{extra}{i}"]
            writer.writerow([*front, *row, *([] if y is None else [y[i]])])


def rows(n, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 6)) * [1, 10, 0.1, 1, 5, 1] + [0, 100, 0, 1, -3, 2]
    side = ((X - [0, 100, 0, 1, -3, 2]) / [1, 10, 0.1, 1, 5, 1]).sum(axis=1) + generator.normal(size=n)
    return X, np.where(side > 0, "ill", "well")


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    """However busy the machine is, no command takes long enough to tell of its progress."""
    monkeypatch.setattr("exclusivity.cli.output.monotonic", lambda: 0.0)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Files that no test changes."""
    folder = tmp_path_factory.mktemp("erm")
    X, y = rows(120, 0)
    write_csv(folder / "train.csv", X, y)
    X, y = rows(80, 1)
    write_csv(folder / "test.csv", X, y)
    write_csv(folder / "new.csv", X)
    write_csv(folder / "narrow.csv", X[:, :4], names=NAMES[:4])
    write_csv(folder / "shuffled.csv", X[:, ::-1], y, names=NAMES[::-1], extra="r")
    (folder / "empty.csv").write_text("")
    flowers = load_iris()
    write_csv(folder / "iris.csv", flowers.data, flowers.target, flowers.feature_names, "species")
    lines = [
        f"{'+1' if label == 'ill' else '-1'} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    quiet = ["--quiet"]
    fits = [
        ["train.csv", "-o", "soft.erm", "--target", "state", *quiet],
        ["train.csv", "-o", "hard.erm", "--target", "state", "--members", "5", *quiet, *VOTES],
        ["iris.csv", "-o", "iris.erm", "--target", "species", "--scale", "minmax", *quiet],
        ["rows.svm", "-o", "svm.erm", "--scale", "standard", *quiet],
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for arguments in fits:
            assert main(["fit", *arguments]) == 0
    return folder


@pytest.fixture
def erm(world, tmp_path, monkeypatch, capsys):
    """Run ``erm`` in a copy of the world's file names; gives exit code, output and errors."""
    for path in world.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        capsys.readouterr()
        code = main([str(argument) for argument in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
