"""``erm fit`` holds the rows once: reading, scaling and training take little memory besides."""

import tracemalloc

import numpy as np

from exclusivity.cli.main import main

ROWS, FEATURES = 30_000, 30


def test_a_csv_file_takes_less_than_three_times_its_array(world, tmp_path):
    del world  # its fits have imported everything
    generator = np.random.default_rng(0)
    X = generator.integers(0, 100, (ROWS, FEATURES))
    labels = np.where(X[:, 0] + X[:, 1] > X[:, 2] + 50, "a", "b")
    lines = [",".join(f"f{j}" for j in range(FEATURES)) + ",state"]
    lines += [",".join(map(str, row)) + f",{label}" for row, label in zip(X.tolist(), labels, strict=True)]
    path = tmp_path / "big.csv"
    path.write_text("\n".join(lines))
    del lines, X
    argv = ["fit", str(path), "--target", "state", "-o", str(tmp_path / "m.erm"), "--quiet"]
    tracemalloc.start()
    try:
        assert main(argv) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What a block of lines takes while it is read does not grow with the file.
    assert peak < 3 * 8 * ROWS * FEATURES + 12_000_000, peak
