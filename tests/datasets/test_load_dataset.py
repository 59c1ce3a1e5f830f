"""The nine sets: where they come from, what they look like, and what is said where one is missing."""

import dataclasses
import hashlib
import http.server
import threading

import numpy as np
import pytest

from exclusivity.datasets import (
    REGISTRY,
    DataFileError,
    DatasetNotFoundError,
    DownloadError,
    available_datasets,
    download,
    fetch_dataset,
    find_data_file,
    load_dataset,
    loader,
)
from exclusivity.datasets.registry import SITE, RemoteFile

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
def folder(isolated, monkeypatch):
    folder = isolated / "data"
    folder.mkdir()
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(folder))
    return folder


class TestBundled:
    @pytest.mark.parametrize("name", BUNDLED)
    def test_scaled(self, isolated, name):
        info, found = REGISTRY[name], load_dataset(name, download=False)
        rows = SPLICE_ROWS if name == "splice" else info.n_rows
        assert found.data.shape == (rows, info.n_features)
        assert found.data.dtype == found.target.dtype == np.float64
        assert set(found.target) == {-1.0, 1.0}
        low, high = found.data.min(axis=0), found.data.max(axis=0)
        constant = low == high
        assert constant.sum() == (name == "ionosphere")
        np.testing.assert_array_equal(low, np.where(constant, 0, -1))
        np.testing.assert_array_equal(high, np.where(constant, 0, 1))

    @pytest.mark.parametrize("name", BUNDLED)
    def test_original_values(self, isolated, name):
        raw, scaled = load_dataset(name, scaled=False), load_dataset(name, scaled=True)
        np.testing.assert_array_equal(raw.target, scaled.target)
        low, high = raw.data.min(axis=0), raw.data.max(axis=0)
        keep = high > low
        np.testing.assert_allclose(
            ((scaled.data + 1) / 2 * (high - low) + low)[:, keep], raw.data[:, keep], atol=1e-12 * high.max()
        )
        assert "original values" in raw.DESCR
        assert "scaled to [-1, 1]" in scaled.DESCR

    def test_known_rows(self, isolated):
        """The first rows of what everybody knows."""
        np.testing.assert_array_equal(
            load_dataset("diabetes", scaled=False).data[0], [6, 148, 72, 35, 0, 33.6, 0.627, 50]
        )
        assert load_dataset("diabetes").target[0] == -1  # tested positive
        german = load_dataset("german", scaled=False)
        np.testing.assert_array_equal(german.data[0, :5], [1, 6, 4, 12, 5])
        assert german.target[0] == -1  # good credit
        assert set(np.unique(load_dataset("splice", scaled=False).data)) == {1, 2, 3, 4}

    @pytest.mark.parametrize("name", BUNDLED)
    def test_facts(self, isolated, name):
        found = load_dataset(name)
        assert found.name == name
        assert found.source.startswith("bundled with exclusivity (from ")
        assert "this copy: MIT" in found.licence
        assert REGISTRY[name].licence in found.licence
        assert found.DESCR.startswith(f"{name}: {REGISTRY[name].title}\n{len(found.data)} rows")
        if found.feature_names is not None:
            assert len(found.feature_names) == found.data.shape[1]

    def test_nobody_shares_arrays(self, isolated):
        first = load_dataset("heart")
        first.data[:] = 0
        first.feature_names.clear()
        assert load_dataset("heart").data.any()
        assert load_dataset("heart").feature_names[0] == "age"


class TestOrder:
    def test_folder_then_cache_then_bundle(self, folder, isolated):
        raw = load_dataset("heart", scaled=False)
        assert raw.source.startswith("bundled")
        write_libsvm(isolated / "cache" / "heart", raw.data[::-1], raw.target[::-1])
        cached = load_dataset("heart", scaled=False)
        assert cached.source == f"{isolated / 'cache' / 'heart'} (the cache, EXCLUSIVITY_CACHE)"
        np.testing.assert_array_equal(cached.data, raw.data[::-1])
        write_libsvm(folder / "heart", raw.data, raw.target)
        own = load_dataset("heart", scaled=False)
        assert own.source == f"{folder / 'heart'} (the folder, EXCLUSIVITY_DATA)"
        np.testing.assert_array_equal(own.data, raw.data)
        np.testing.assert_array_equal(own.target, raw.target)
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
        for action in (available_datasets, lambda: load_dataset("heart")):
            with pytest.raises(FileNotFoundError, match=r"EXCLUSIVITY_DATA is .*not an existing directory"):
                action()

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
        with pytest.raises(DataFileError, match="line 1: index 9223372036854775807 is too large"):
            load_dataset("liver")

    def test_far_too_large(self, folder, monkeypatch):
        monkeypatch.setattr(loader, "_MAX_BYTES", 10)
        (folder / "liver-disorders_scale").write_text("1 1:1 2:1\n-1\n")
        with pytest.raises(DataFileError, match="larger than max_bytes=10"):
            load_dataset("liver")


class TestMissing:
    def test_ijcnn1(self, isolated):
        with pytest.raises(DatasetNotFoundError) as caught:
            load_dataset("ijcnn1")
        assert isinstance(caught.value, FileNotFoundError)
        message = str(caught.value)
        assert message.startswith(
            "the data set 'ijcnn1' was not found. Ways to get it: (1) set EXCLUSIVITY_DATA"
        )
        assert "'ijcnn1.train' or 'ijcnn1'" in message
        assert SITE + "ijcnn1.bz2" in message
        assert str(isolated / "cache") in message
        assert "EXCLUSIVITY_CACHE" in message
        assert "not bundled" in message
        assert "checksum of the LIBSVM site's file is not known" in message

    def test_download_not_allowed(self, isolated, monkeypatch):
        monkeypatch.setattr(loader, "fetch", None)
        with pytest.raises(
            DatasetNotFoundError, match=r"no download, since download=False; https://.* has it"
        ):
            load_dataset("australian", download=False)

    def test_download_fails(self, isolated, monkeypatch):
        def fail(remote, path):
            raise DownloadError("the cable is out.")

        monkeypatch.setattr(loader, "fetch", fail)
        with pytest.raises(
            DatasetNotFoundError, match=r"\(4\) the download failed: the cable is out\.$"
        ) as caught:
            load_dataset("australian")
        assert isinstance(caught.value.__cause__, DownloadError)

    def test_original_values_missing(self, isolated, monkeypatch):
        monkeypatch.setattr(loader, "fetch", None)
        with pytest.raises(DatasetNotFoundError) as caught:
            load_dataset("australian", scaled=False)
        assert "'australian' with its original values was not found" in str(caught.value)
        assert "LIBSVM file 'australian' (" in str(caught.value)
        assert "australian_scale holds scaled values" in str(caught.value)

    def test_original_values_that_do_not_exist(self, isolated):
        with pytest.raises(ValueError, match=r"no original values of 'ijcnn1'.* scaled=True gives"):
            load_dataset("ijcnn1", scaled=False)

    @pytest.mark.parametrize("name", ["iris", "", "Heart", None, 3, ["heart"]])
    def test_unknown_name(self, name):
        for action in (load_dataset, fetch_dataset):
            with pytest.raises(ValueError, match=r"name must be one of sonar, german, .*splice; got"):
                action(name)


class TestAvailable:
    def test_bundle_and_site(self, isolated):
        found = available_datasets()
        assert list(found) == NAMES
        assert found.pop("ijcnn1") is None
        assert found.pop("australian") == f"download from {SITE}australian_scale"
        assert all(where.startswith("bundled with exclusivity") for where in found.values())
        assert not (isolated / "cache").exists()

    def test_without_download(self, isolated):
        found = available_datasets(download=False)
        assert [name for name, where in found.items() if where is None] == ["australian", "ijcnn1"]

    def test_original_values(self, isolated):
        found = available_datasets(scaled=False)
        assert [name for name, where in found.items() if where is None] == ["australian", "ijcnn1"]

    def test_folder(self, folder):
        (folder / "ijcnn1.train.bz2").touch()
        (folder / "australian").touch()
        found = available_datasets()
        assert found["ijcnn1"] == f"{folder / 'ijcnn1.train.bz2'} (the folder, EXCLUSIVITY_DATA)"
        assert found["australian"].startswith(str(folder / "australian"))


class TestDownload:
    TEXT = b"1 1:0.5 2:-1\n-1 2:1\n"

    @pytest.fixture
    def asked(self, isolated, monkeypatch):
        """The paths that a server on this machine was asked for; "australian" and "heart" are there."""
        asked, text = [], self.TEXT

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *arguments):
                pass

        monkeypatch.setattr(download, "SCHEMES", ("http",))
        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            for name in ("australian", "heart"):
                url = f"http://127.0.0.1:{server.server_port}/{name}_scale"
                remote = RemoteFile(url, (hashlib.sha256(text).hexdigest(),), len(text))
                small = dataclasses.replace(
                    REGISTRY[name], n_rows=2, n_features=2, n_positive=1, remote=remote
                )
                monkeypatch.setitem(REGISTRY, name, small)
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            yield asked
            server.shutdown()
            thread.join()

    def test_once(self, asked, isolated):
        found = load_dataset("australian")
        np.testing.assert_array_equal(found.data, [[0.5, -1], [0, 1]])
        assert found.source.startswith("download from http://127.0.0.1")
        assert (isolated / "cache" / "australian_scale").read_bytes() == self.TEXT
        again = load_dataset("australian")
        np.testing.assert_array_equal(again.data, found.data)
        assert again.source.endswith("(the cache, EXCLUSIVITY_CACHE)")
        assert asked == ["/australian_scale"]

    def test_bundled_set_on_request(self, asked, isolated):
        assert load_dataset("heart").source.startswith("bundled")
        assert asked == []
        path = fetch_dataset("heart")
        assert path == fetch_dataset("heart") == isolated / "cache" / "heart_scale"
        assert load_dataset("heart").data.shape == (2, 2)
        assert asked == ["/heart_scale"]

    @pytest.mark.parametrize("name", ["ijcnn1", "diabetes", "liver", "splice"])
    def test_no_checksum_no_download(self, isolated, name):
        with pytest.raises(DatasetNotFoundError, match="checksum of the LIBSVM site's file is not known"):
            fetch_dataset(name)


def rows_of(data, target):
    """The rows, class included, in an order of their own."""
    table = np.column_stack([target, data])
    return table[np.lexsort(table.T[::-1])]


def load_file(names, n_features):
    """The files of these names in the user's folder, one after the other."""
    parts = []
    for name in names:
        path = find_data_file(name)
        if path is None:
            pytest.skip(f"{name} is not there: set EXCLUSIVITY_DATA to the folder that holds it")
        parts.append(loader.read_libsvm(path, n_features=n_features))
    return np.vstack([part.data.toarray() for part in parts]), np.concatenate([part.target for part in parts])


class TestAgainstFiles:
    """The bundle and the folder hold the same rows."""

    @staticmethod
    def bundled(name, scaled):
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("EXCLUSIVITY_DATA")
            patch.setenv("EXCLUSIVITY_CACHE", "/nowhere")
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
        if not any(find_data_file(file) for file in info.scaled_files):
            pytest.skip(
                f"{info.scaled_files[0]} is not there: set EXCLUSIVITY_DATA to the folder that holds it"
            )
        found = load_dataset(name, download=False)
        assert "EXCLUSIVITY_DATA" in found.source
        assert isinstance(found.data, np.ndarray)
        assert found.data.shape == (info.n_rows, info.n_features)
        assert np.sum(found.target == 1) == info.n_positive
        assert np.abs(found.data).max() <= 1

    @pytest.mark.parametrize("name", [name for name in NAMES if REGISTRY[name].remote is not None])
    def test_checksums_of_the_site(self, name):
        """The folder's files are the site's text, according to where they come from."""
        path = find_data_file(REGISTRY[name].scaled_files[0])
        if path is None:
            pytest.skip(f"{name} is not there: set EXCLUSIVITY_DATA to the folder that holds it")
        content = path.read_bytes()
        remote = REGISTRY[name].remote
        assert hashlib.sha256(content).hexdigest() in remote.sha256
        assert len(content) == remote.n_bytes
        assert remote.url == SITE + path.name
        if name == "sonar":
            assert hashlib.sha256(content[:-1]).hexdigest() in remote.sha256
