"""The nine sets of the paper: where they come from, and what is said where one is missing."""

import dataclasses
import hashlib
import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from exclusivity.io import DataFileError
from readers import read_libsvm
from reproduction import datasets
from reproduction.datasets import REGISTRY, SITE, load_dataset

NAMES = ["sonar", "german", "australian", "ijcnn1", "heart", "ionosphere", "diabetes", "liver", "splice"]
BUNDLED = [name for name in NAMES if name not in ("australian", "ijcnn1")]
SPLICE_ROWS = 3175  # all of them, not the thousand of the LIBSVM site


def write_libsvm(path, data, target):
    rows = [
        " ".join([f"{label:+g}", *(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)])
        for row, label in zip(data.tolist(), target.tolist(), strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def isolated(tmp_path, monkeypatch):
    """No folder of the user's, and no downloads."""
    monkeypatch.delenv("EXCLUSIVITY_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def folder(isolated, monkeypatch):
    folder = isolated / "data"
    folder.mkdir()
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(folder))
    return folder


class TestOrder:
    def test_folder_before_bundle(self, folder):
        raw = load_dataset("heart", scaled=False)
        assert raw.source.startswith("bundled")
        write_libsvm(folder / "heart", raw.data[::-1], raw.target[::-1])
        own = load_dataset("heart", scaled=False)
        assert own.source == str(folder / "heart")
        np.testing.assert_array_equal(own.data, raw.data[::-1])
        np.testing.assert_array_equal(own.target, raw.target[::-1])
        assert "this copy: as where you got it" in own.licence

    def test_raw_file_is_scaled_here(self, folder):
        expected, raw = load_dataset("heart"), load_dataset("heart", scaled=False)
        write_libsvm(folder / "heart", raw.data, raw.target)
        found = load_dataset("heart")
        assert found.source.startswith(str(folder / "heart"))
        np.testing.assert_array_equal(found.data, expected.data)

    def test_scaled_file_is_taken_as_it_is(self, folder):
        raw = load_dataset("heart", scaled=False)
        write_libsvm(folder / "heart", raw.data, raw.target)
        write_libsvm(folder / "heart_scale", raw.data / 1000, raw.target)
        np.testing.assert_array_equal(load_dataset("heart").data, raw.data / 1000)
        np.testing.assert_array_equal(load_dataset("heart", scaled=False).data, raw.data)

    def test_folder_without_the_set(self, folder):
        assert load_dataset("sonar").source.startswith("bundled")

    def test_only_scaled_values_in_the_folder(self, folder):
        scaled = load_dataset("sonar")
        write_libsvm(folder / "sonar_scale", scaled.data, scaled.target)
        assert load_dataset("sonar").source.startswith(str(folder))
        assert load_dataset("sonar", scaled=False).source.startswith("bundled")

    def test_folder_that_is_not_there(self, isolated, monkeypatch):
        monkeypatch.setenv("EXCLUSIVITY_DATA", str(isolated / "absent"))
        with pytest.raises(FileNotFoundError, match=r"EXCLUSIVITY_DATA is .*not an existing directory"):
            load_dataset("heart")

    def test_compressed_and_second_name(self, folder, monkeypatch):
        small = dataclasses.replace(REGISTRY["ijcnn1"], n_rows=2, n_features=2, n_positive=1)
        monkeypatch.setitem(REGISTRY, "ijcnn1", small)
        (folder / "ijcnn1").write_text("1 1:0.5\n-1 2:7\n")
        found = load_dataset("ijcnn1")
        np.testing.assert_array_equal(found.data, [[0.5, 0], [0, 7]])  # not scaled further
        assert found.feature_names is None
        (folder / "ijcnn1.train").write_text("1 1:0.25\n-1 2:7\n")
        assert load_dataset("ijcnn1").data[0, 0] == 0.25


class TestWrongFiles:
    def test_other_version(self, folder):
        """The LIBSVM site has replaced the 345 x 6 version of liver by one with 145 rows."""
        liver = load_dataset("liver")
        write_libsvm(folder / "liver-disorders_scale", liver.data[:145], liver.target[:145])
        with pytest.raises(DataFileError) as caught:
            load_dataset("liver")
        assert caught.value.file == str(folder / "liver-disorders_scale")
        assert "found 145 rows with " in caught.value.cause
        assert "expected the set 'liver': 345 rows of 6 features with 145 and 200." in caught.value.cause

    def test_other_labels(self, folder):
        liver = load_dataset("liver")
        write_libsvm(folder / "liver-disorders_scale", liver.data, np.where(liver.target > 0, 1, 0))
        with pytest.raises(DataFileError, match="145 labels \\+1 and 0 labels -1"):
            load_dataset("liver")

    def test_index_of_another_world(self, folder):
        (folder / "liver-disorders_scale").write_text("1 9223372036854775807:1\n")
        with pytest.raises(DataFileError, match=r"line 1: found .* from 1 to at most n_features=6"):
            load_dataset("liver")

    def test_far_too_large(self, folder, monkeypatch):
        monkeypatch.setattr(datasets, "_MAX_BYTES", 10)
        (folder / "liver-disorders_scale").write_text("1 1:1 2:1\n-1\n")
        with pytest.raises(DataFileError, match="larger than max_bytes=10"):
            load_dataset("liver")


class TestMissing:
    def test_ijcnn1(self, isolated):
        with pytest.raises(FileNotFoundError) as caught:
            load_dataset("ijcnn1")
        message = str(caught.value)
        assert "the data set 'ijcnn1' was not found: it is not bundled with the package" in message
        assert "the checksum of the LIBSVM site's file is not known" in message
        assert (
            "Set EXCLUSIVITY_DATA to a folder that holds the LIBSVM file 'ijcnn1.train' or 'ijcnn1'"
            in message
        )
        assert SITE in message

    @pytest.mark.parametrize(
        ("options", "cause"),
        [({"download": False}, "and download=False"), ({"scaled": False}, "holds scaled values")],
    )
    def test_without_download(self, isolated, monkeypatch, options, cause):
        monkeypatch.setattr(sklearn.datasets, "fetch_file", None)
        with pytest.raises(FileNotFoundError, match=cause):
            load_dataset("australian", **options)

    def test_original_values_that_do_not_exist(self, isolated):
        with pytest.raises(ValueError, match=r"no original values of 'ijcnn1'.* scaled=True gives"):
            load_dataset("ijcnn1", scaled=False)

    @pytest.mark.parametrize("name", ["iris", "", "Heart", None, 3])
    def test_unknown_name(self, name):
        with pytest.raises(ValueError, match=r"name must be one of sonar, german, .*splice; got"):
            load_dataset(name)


class TestDownload:
    TEXT = "1 1:0.5 2:-1\n-1 2:1\n"

    @pytest.fixture
    def site(self, isolated, monkeypatch):
        """Stand in for the LIBSVM site: what it was asked for, and its content by address."""
        asked, content = [], {SITE + "australian_scale": self.TEXT}

        def urlretrieve(url, filename):
            asked.append(url)
            if url not in content:
                raise URLError("the cable is out")
            Path(filename).write_text(content[url])

        monkeypatch.setattr("sklearn.datasets._base.urlretrieve", urlretrieve)
        monkeypatch.setattr("sklearn.datasets._base.time.sleep", lambda seconds: None)
        checksum = hashlib.sha256(self.TEXT.encode()).hexdigest()
        small = dataclasses.replace(
            REGISTRY["australian"], n_rows=2, n_features=2, n_positive=1, sha256=checksum
        )
        monkeypatch.setitem(REGISTRY, "australian", small)
        return asked, content

    def test_once(self, site, isolated):
        asked, _ = site
        for _ in range(2):
            found = load_dataset("australian")
            np.testing.assert_array_equal(found.data, [[0.5, -1], [0, 1]])
            assert found.source == str(isolated / "home" / "australian_scale")
        assert asked == [SITE + "australian_scale"]

    def test_wrong_checksum(self, site, isolated):
        _, content = site
        content[SITE + "australian_scale"] = "1 1:0.5 2:-1\n-1 2:2\n"
        with pytest.raises(FileNotFoundError, match=r"the download of https://.* failed: .*SHA256"):
            load_dataset("australian")
        assert not (isolated / "home" / "australian_scale").exists()

    @pytest.mark.filterwarnings("ignore:Retry downloading")
    def test_no_network(self, site):
        _, content = site
        content.clear()
        with pytest.raises(FileNotFoundError, match=r"the download of https://.* failed: .*the cable is out"):
            load_dataset("australian")

    def test_bundled_sets_are_not_fetched(self, site):
        asked, _ = site
        assert load_dataset("heart").source.startswith("bundled")
        assert not asked


def rows_of(data, target):
    """The rows, class included, in an order of their own."""
    table = np.column_stack([target, data])
    return table[np.lexsort(table.T[::-1])]


def user_file(name):
    """The file in the user's folder, or None."""
    folder = datasets.data_folder()
    candidates = [] if folder is None else [folder / f"{name}{suffix}" for suffix in ("", ".bz2", ".gz")]
    return next((path for path in candidates if path.is_file()), None)


def load_file(names, n_features):
    """The files of these names in the user's folder, one after the other."""
    parts = []
    for name in names:
        path = user_file(name)
        if path is None:
            pytest.skip(f"{name} is not there: set EXCLUSIVITY_DATA to the folder that holds it")
        parts.append(read_libsvm(path, n_features=n_features))
    return np.vstack([part.data.toarray() for part in parts]), np.concatenate([part.target for part in parts])


class TestAgainstFiles:
    """The bundle and the folder hold the same rows."""

    @staticmethod
    def bundled(name, scaled):
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("EXCLUSIVITY_DATA")
            return load_dataset(name, scaled=scaled)

    @pytest.mark.parametrize("name", BUNDLED)
    def test_scaled(self, name):
        files = ["splice_scale", "splice_scale.t"] if name == "splice" else REGISTRY[name].scaled_files
        data, target = load_file(files, REGISTRY[name].n_features)
        found = self.bundled(name, True)
        six_digits = np.char.mod("%.6g", found.data).astype(float)  # what svm-scale prints
        # One of sonar's values is -8e-18 in the file and 0 here.
        np.testing.assert_allclose(
            rows_of(six_digits, found.target), rows_of(data, target), rtol=0, atol=1e-15
        )
        np.testing.assert_allclose(six_digits, found.data, rtol=0, atol=5.1e-7)

    @pytest.mark.parametrize("name", [name for name in BUNDLED if name not in ("sonar", "ionosphere")])
    def test_original_values(self, name):
        files = ["splice", "splice.t"] if name == "splice" else REGISTRY[name].raw_files
        data, target = load_file(files, REGISTRY[name].n_features)
        found = self.bundled(name, False)
        np.testing.assert_array_equal(rows_of(found.data, found.target), rows_of(data, target))

    @pytest.mark.parametrize("name", NAMES)
    def test_from_the_folder(self, name):
        info = REGISTRY[name]
        if not any(user_file(file) for file in info.scaled_files):
            pytest.skip(
                f"{info.scaled_files[0]} is not there: set EXCLUSIVITY_DATA to the folder that holds it"
            )
        found = load_dataset(name, download=False)
        assert found.source.startswith(os.environ["EXCLUSIVITY_DATA"])
        assert isinstance(found.data, np.ndarray)
        assert found.data.shape == (info.n_rows, info.n_features)
        assert np.sum(found.target == 1) == info.n_positive
        assert np.abs(found.data).max() <= 1

    def test_checksum_of_the_site(self):
        """The folder's file is the site's text, according to where it comes from."""
        path = user_file("australian_scale")
        if path is None:
            pytest.skip("australian_scale is not there: set EXCLUSIVITY_DATA to the folder that holds it")
        assert hashlib.sha256(path.read_bytes()).hexdigest() == REGISTRY["australian"].sha256
