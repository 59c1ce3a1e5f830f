"""Files as blocks: every row in exactly one block, the same rows as in memory, errors that name the file."""

import bz2
import gzip
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from exclusivity.dask._engine import Engine
from exclusivity.dask._files import (
    ColumnMoments,
    ColumnRanges,
    FileLayout,
    file_arrays,
    read_rows as read_part,
    scaled,
    survey_files,
    survey_part,
)
from exclusivity.io import DataFileError
from exclusivity.io._formats import FORMATS, FilePart
from exclusivity.io._reading import Reading
from exclusivity.io._text import TextSpan, text_spans
from readers import NUMBER, read_csv, read_libsvm, read_parquet


def layout_named(name, names=None, n_features=None, **reading):
    rules = None if n_features is None else dict.fromkeys(names or range(n_features), NUMBER)
    return FileLayout(FORMATS[name], Reading(**reading, n_features=n_features, rules=rules))


def file_parts(path, layout, block_bytes):
    return layout.format.parts(path, layout.reading, block_bytes)


CSV = layout_named("csv", target="state", names=("a", "b"), n_features=2)
SVM = layout_named("libsvm")


def write_rows(path, n_rows, seed=0):
    """A table a, b, state in the format that the name asks for; gives X and y."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-50, 50, size=(n_rows, 2)) / 4
    y = np.where(X[:, 0] > 0, "ill", "well")
    if path.suffix == ".npy":
        y = (y == "ill").astype(float)
        np.save(path, np.column_stack([X, y]))
    elif path.suffix == ".parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "state": y}), path, row_group_size=30)
    elif path.suffix == ".svm":
        y = np.where(X[:, 0] > 0, 1, -1)
        path.write_text("".join(f"{c} 1:{a} 2:{b}\n" for (a, b), c in zip(X, y, strict=True)))
    else:
        lines = "a,b,state\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(X, y, strict=True))
        packers = {".gz": gzip.compress, ".bz2": bz2.compress}
        path.write_bytes(packers.get(path.suffix, bytes)(lines.encode()))
    return X, y


def layout_of(path):
    kind = "csv" if ".csv" in path.name else {"svm": "libsvm"}.get(path.suffix[1:], path.suffix[1:])
    if kind == "libsvm":
        return SVM
    if kind == "npy":
        return layout_named("npy", target=-1, n_features=2)
    return layout_named(kind, target="state", names=("a", "b"), n_features=2)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.csv.bz2", "x.parquet", "x.npy", "x.svm"])
@pytest.mark.parametrize("block_bytes", [1, 200, 700, 10**9])
def test_the_parts_of_a_file_are_the_file(tmp_path, name, block_bytes):
    path = tmp_path / name
    X, y = write_rows(path, 100)
    layout = layout_of(path)
    parts = file_parts(str(path), layout, block_bytes)
    can_be_cut = name not in ("x.csv.gz", "x.csv.bz2")
    assert (len(parts) > 1) == (can_be_cut and block_bytes < 10**9)
    blocks = [read_part(part, layout) for part in parts]
    rows = [block.toarray() if sparse.issparse(block) else block for block, _ in blocks]
    assert np.array_equal(np.concatenate([part for part in rows if len(part)]), X)
    assert np.array_equal(np.concatenate([labels for _, labels in blocks if len(labels)]), y)
    size = path.stat().st_size
    assert size - len(parts) <= sum(part.n_bytes for part in parts) <= size


def test_row_groups_are_put_together_up_to_the_size_of_a_block(tmp_path):
    path = tmp_path / "x.parquet"
    write_rows(path, 100)
    parts = file_parts(str(path), layout_of(path), 60 * 16)
    assert [part.span for part in parts] == [(0, 2), (2, 4)]
    assert [part.memory for part in parts] == [960, 640]


def test_empty_row_groups_are_no_blocks(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    full = pa.table({"a": [1.0, 2.0], "b": [0.0, 1.0], "state": ["ill", "well"]})
    with pq.ParquetWriter(tmp_path / "x.parquet", full.schema) as writer:
        for table in (full, full.slice(0, 0), full):
            writer.write_table(table)
    pq.write_table(full.slice(0, 0), tmp_path / "none.parquet")
    layout = layout_of(tmp_path / "x.parquet")
    parts = file_parts(str(tmp_path / "x.parquet"), layout, 10**9)
    assert sum(len(read_part(part, layout)[1]) for part in parts) == 4
    assert file_parts(str(tmp_path / "none.parquet"), layout, 10**9) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ends", [True, False])
def test_every_line_is_in_one_span(tmp_path, newline, ends):
    path = tmp_path / "x.csv"
    lines = ["\ufeff", "a,b,state", "1,2,x", "", "3,4,y", "5555555,6,z"]
    path.write_bytes((newline.join(lines) + newline * ends).encode())
    for n_bytes in range(1, path.stat().st_size + 2):
        found = b""
        for start, stop in text_spans(path, n_bytes):
            with path.open("rb") as stream:
                found += TextSpan(stream, start, stop, header=False).read(1000)
        assert found == path.read_bytes()


def test_a_later_span_begins_with_the_header_and_counts_lines_as_the_file_does(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\na,b,state\n1,2,x\n3,4,y\n5,oops,z\n")
    for start in range(1, len(path.read_bytes()) - 9):
        with pytest.raises(DataFileError, match=r"x.csv, line 5, column 'b': found 'oops'"):
            read_part(FilePart(str(path), 1, (start, 100)), CSV)
    svm = tmp_path / "x.svm"
    svm.write_text("1 1:1\n-1 2:x\n")
    with pytest.raises(DataFileError, match=r"x.svm, line 2: .*'-1 2:x'"):
        read_part(FilePart(str(svm), 1, (3, 13)), SVM)


@pytest.mark.parametrize("blank", ["\n", " \r\n"])
def test_spans_of_blank_lines_have_no_rows(tmp_path, blank):
    """However many there are, between rows, before the header and at the end."""
    path = tmp_path / "x.csv"
    path.write_bytes(
        "\ufeff".encode() + (blank * 9 + "a,b,state\n" + blank * 9 + "1,2,x\n" + blank * 9).encode()
    )
    for block_bytes in range(1, 60, 7):
        blocks = [read_part(part, CSV) for part in file_parts(str(path), CSV, block_bytes)]
        assert np.vstack([rows for rows, _ in blocks]).tolist() == [[1, 2]]
    path = tmp_path / "x.svm"
    path.write_text(blank * 9 + "1 2:3\n" + blank * 9)
    assert sum(len(read_part(part, SVM)[1]) for part in file_parts(str(path), SVM, 4)) == 1


def test_columns_in_another_order_and_other_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("state,b,a\nill,1,2\n")
    X, y = read_part(FilePart(str(path), 1), CSV)
    assert X.tolist() == [[2, 1]]
    assert y.tolist() == ["ill"]
    for header, message in (("state,b,c", "no column 'a' that is a feature"), ("state,a,b,c", "more .* 'c'")):
        path.write_text(f"{header}\nill,1,2{',3' * (header.count(',') == 3)}\n")
        with pytest.raises(DataFileError, match=rf"x.csv(, line 1)?: .*{message}"):
            read_part(FilePart(str(path), 1), CSV)
    np.save(tmp_path / "x.npy", np.zeros((3, 5)))
    with pytest.raises(DataFileError, match=r"x.npy: the file has 4 features; expected 2"):
        read_part(FilePart(str(tmp_path / "x.npy"), 1, (0, 3)), layout_named("npy", target=0, n_features=2))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "a worker cannot read the file .No such file"),
        ("x.csv.gz", gzip.compress(b"a,b,state\n1,2,ill\n" * 50)[:-9], "compressed data are damaged"),
        ("x.csv.gz", gzip.compress(b"a,b,state\n" * 9)[:14] + b"\xff" * 9, "compressed data are damaged"),
        ("x.csv", b"a,b,state\n1,2,0.5\n", "the target holds 0.5; expected classes"),
        ("x.parquet", b"PAR1 is all PAR1", "damaged, or not a Parquet"),
        ("x.npy", b"nothing", "damaged, or not a .npy"),
    ],
    ids=["gone", "cut", "overwritten", "no classes", "no Parquet", "no array"],
)
def test_a_bad_file_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"{name}(, line 1)?: .*{message}"):
        read_part(FilePart(str(path), 1), layout_of(path))


def same_scaler(found, expected):
    assert type(found) is type(expected)
    assert found.get_params() == expected.get_params()
    for name, value in vars(expected).items():
        if name.endswith("_") and value is not None:
            # A variance of nothing but rounding errors has no digits to compare.
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-12, atol=1e-20, err_msg=name)


@pytest.mark.parametrize("cuts", [[50], [1, 2], [0, 30, 30, 99]])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_scalers_from_sums_are_those_of_all_rows(cuts, is_sparse, scale):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 5)) * [1, 1e-3, 1e3, 0, 1] + [1e3, 0, 5, 0.1, 0]
    X[:, 4] = 0
    if is_sparse:
        X = sparse.csr_matrix(np.where(rng.random(X.shape) < 0.3, X, 0))
    kind = ColumnMoments if scale == "standard" else ColumnRanges
    blocks = [X[a:b] for a, b in zip([0, *cuts], [*cuts, 100], strict=True) if b > a]
    # A LIBSVM part may know the first columns only.
    sums = [kind.of(block[:, :4]).widened(5) if is_sparse else kind.of(block) for block in blocks]
    expected = StandardScaler(with_mean=not is_sparse)
    if scale == "minmax":
        expected = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
    expected.fit(X)
    found = sum(sums[1:], sums[0]).scaler(is_sparse=is_sparse)
    same_scaler(found, expected)
    once, twice = scaled(found, X.copy()), expected.transform(X.copy())
    np.testing.assert_allclose(abs(once - twice).max(), 0, atol=1e-9)
    assert found.copy


def test_the_survey_and_the_arrays(local, tmp_path):
    """LIBSVM parts of different widths; without a cluster."""
    for number, text in enumerate(["1 1:2\n-1 2:4\n", "1 3:-6\n", "-1 1:1\n3 2:2\n"]):
        (tmp_path / f"{number}.svm").write_text(text)
    parts = [FilePart(str(tmp_path / f"{number}.svm"), 7) for number in range(3)]
    told = []
    look = partial(survey_part, layout=SVM, scale="minmax")
    survey = survey_files(Engine(None), parts, look, told.append)[0]
    assert survey.sizes == (2, 1, 2)
    assert (survey.n_rows, survey.n_features) == (5, 3)
    assert survey.labels.tolist() == [-1, 1, 3]
    layout = SVM.with_width(3)
    X, y = file_arrays(parts, survey.sizes, layout, survey.sums.scaler(is_sparse=True))
    assert X.chunks == ((2, 1, 2), (3,))
    dense = np.vstack([block.compute().toarray() for block in X.to_delayed().ravel()])
    assert dense.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, -1], [0.5, 0, 0], [0, 0.5, 0]]
    assert y.compute().tolist() == [1, -1, 1, -1, 3]


def test_labels_that_differ_between_files(tmp_path):
    (tmp_path / "words.csv").write_text("a,b,state\n1,2,ill\n")
    (tmp_path / "numbers.csv").write_text("a,b,state\n1,2,1\n")
    looks = [
        survey_part(FilePart(str(tmp_path / name), 1), CSV, "none")[0]
        for name in ("words.csv", "numbers.csv")
    ]
    for one, other in (looks, looks[::-1]):
        with pytest.raises(DataFileError, match=r"words.csv: the labels are text, .*numbers.csv are numbers"):
            one + other


def test_labels_that_are_no_classes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,state\n" + "".join(f"1,2,{i}\n" for i in range(10_001)))
    with pytest.raises(DataFileError, match=r"x.csv: the target has 10001 different values"):
        survey_part(FilePart(str(path), 1), CSV, "none")


def test_readers_agree_on_what_was_written(tmp_path):
    """The helpers of these tests write what the readers in memory read."""
    for name, read in (("x.csv", read_csv), ("x.parquet", read_parquet)):
        X, y = write_rows(tmp_path / name, 10)
        table = read(tmp_path / name, target="state")
        assert np.array_equal(table.data, X)
        assert np.array_equal(table.target, y)
    X, y = write_rows(tmp_path / "x.svm", 10)
    assert np.array_equal(read_libsvm(tmp_path / "x.svm", n_features=2).data.toarray(), X)
