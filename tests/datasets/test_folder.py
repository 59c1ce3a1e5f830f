"""The data folder and the files in it."""

import pytest

from exclusivity.datasets import data_folder, find_data_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path))
    return tmp_path


class TestDataFolder:
    def test_set(self, folder):
        assert data_folder() == folder

    def test_unset_or_empty(self, monkeypatch):
        monkeypatch.delenv("EXCLUSIVITY_DATA", raising=False)
        assert data_folder() is None
        monkeypatch.setenv("EXCLUSIVITY_DATA", "")
        assert data_folder() is None

    @pytest.mark.parametrize("kind", ["absent", "file"])
    def test_no_directory(self, tmp_path, monkeypatch, kind):
        path = tmp_path / kind
        if kind == "file":
            path.touch()
        monkeypatch.setenv("EXCLUSIVITY_DATA", str(path))
        with pytest.raises(
            FileNotFoundError, match=r"EXCLUSIVITY_DATA is .* set it to the folder .* or unset it"
        ):
            data_folder()
        with pytest.raises(FileNotFoundError, match=kind):
            find_data_file("heart")

    def test_read_at_every_call(self, folder, monkeypatch):
        monkeypatch.setenv("EXCLUSIVITY_DATA", str(folder.parent))
        assert data_folder() == folder.parent


class TestFindDataFile:
    def test_order_plain_bz2_gz(self, folder):
        assert find_data_file("heart") is None
        for name in ("heart.gz", "heart.bz2", "heart"):
            (folder / name).touch()
            assert find_data_file("heart") == folder / name

    def test_other_files_do_not_count(self, folder):
        for name in ("heart.xz", "heart_scale", "Heart2.gz"):
            (folder / name).touch()
        (folder / "heart.bz2").mkdir()
        assert find_data_file("heart") is None

    @pytest.mark.parametrize(
        "name", ["splice.t", "german.numer_scale", "ijcnn1.train.bz2", "a..b", ".hidden"]
    )
    def test_dots_in_names(self, folder, name):
        (folder / name).touch()
        assert find_data_file(name) == folder / name

    @pytest.mark.parametrize(
        "name",
        [
            "",
            ".",
            "..",
            "../heart",
            "a/heart",
            "/heart",
            "heart/",
            "a\\heart",
            "..\\heart",
            "C:heart",
            "he\0art",
        ],
    )
    def test_only_plain_names(self, folder, name):
        for place in (folder / "a", folder):
            place.mkdir(exist_ok=True)
            (place / "heart").touch()
        with pytest.raises(ValueError, match="name must be a plain file name without a folder; got"):
            find_data_file(name)

    def test_name_is_checked_without_a_folder_too(self, monkeypatch):
        monkeypatch.delenv("EXCLUSIVITY_DATA", raising=False)
        assert find_data_file("heart") is None
        with pytest.raises(ValueError, match="plain file name"):
            find_data_file("../heart")
