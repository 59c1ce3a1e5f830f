"""What runs by itself calls what people run: each command of the workflows exists, no list is out of step."""

import re
import runpy
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from exclusivity import __version__

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(set((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) - set(ROOT.rglob("config.yml")))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PYTHONS = [
    line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: Python :: 3\.\d+$", line)
]
CHECK_RELEASE = runpy.run_path(str(ROOT / "scripts" / "check_release.py"))


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(path):
    return parsed(path)["jobs"].values()


def commands(path):
    """Every line of every ``run``, as words."""
    runs = [step["run"] for job in jobs(path) for step in job["steps"] if "run" in step]
    return [shlex.split(line) for run in runs for line in run.splitlines() if line.strip()]


def recipe(target):
    """The commands of a make target, with its variables put in."""
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE).group(1)
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in lines.splitlines()]


def make_targets():
    return set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


def check_command(words):
    """Fail unless ``words`` can be run in a fresh checkout by whoever has Python and make."""
    match words:
        case ["make", *rest]:
            targets = [word for word in rest if "=" not in word]
            assert targets
            assert set(targets) <= make_targets(), f"no such target: {targets}"
        case ["python", "-m", "pip", "install", "--editable", what]:
            extras = re.fullmatch(r"\.\[([\w,]+)\]", what).group(1).split(",")
            assert set(extras) <= set(PROJECT["optional-dependencies"])
        case ["python", "-m", "pytest", *_]:
            assert f"$(TEST_ENV) .venv/bin/{' '.join(words)}" in recipe("test"), "not what make test runs"
        case _:
            pytest.fail(f"workflows call make targets, so that what they do can be run anywhere: {words}")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_exists(path):
    called = commands(path)
    assert called
    for words in called:
        check_command(words)


def test_a_command_that_does_not_exist_is_found():
    for line in ("make tset", "python scripts/nothing.py", "python -m pytest -n 3", "pytest"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check_command(shlex.split(line))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_ends(path):
    document = parsed(path)
    assert document["permissions"] == {"contents": "read"}
    assert document[True]  # YAML 1.1 reads the key "on" as a truth value
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 90
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w/-]+@[\w./-]+", action) for action in uses), uses


def test_only_publishing_may_prove_who_it_is():
    """Trusted publishing: one job, after the checks, without a secret."""
    rights = {
        (path.stem, name): job["permissions"]
        for path in WORKFLOWS
        for name, job in parsed(path)["jobs"].items()
        if "permissions" in job
    }
    assert rights == {("release", "publish"): {"id-token": "write"}}
    release = ROOT / ".github" / "workflows" / "release.yml"
    assert parsed(release)["jobs"]["publish"]["needs"] == ["build", "wheels"]
    assert "secrets." not in release.read_text(encoding="utf-8")
    assert {"release-check", "dist"} <= {word for words in commands(release) for word in words}


def test_all_declared_pythons_are_tried():
    """A new classifier needs a new column of the matrix, and the other way round."""
    folder = ROOT / ".github" / "workflows"
    matrix = parsed(folder / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python-version"] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    windows = parsed(folder / "windows.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert windows["python-version"] == [PYTHONS[0], PYTHONS[-1]]


def test_what_is_kept_of_a_run_is_what_was_made():
    site = ROOT / ".github" / "workflows" / "docs.yml"
    kept = [step["with"]["path"] for job in jobs(site) for step in job["steps"] if "upload" in str(step)]
    assert len(kept) == 1
    assert any(line.endswith(f" {kept[0]}") for line in recipe("docs"))


def test_the_site_can_import_what_it_documents():
    """Sphinx imports every module of the reference, where nothing but the extra ``docs`` is installed."""
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    needed = re.findall(r"\(extra `\[(\w+)\]`\)", reference)
    assert needed
    assert {line for name in needed for line in extra(name)} <= set(extra("docs"))


def test_commits_are_held_to_make_lint():
    """The same commands in the same order, from the same environment."""
    hooks = [hook for repo in parsed(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == recipe("lint")
    assert all(hook["language"] == "system" and hook["pass_filenames"] is False for hook in hooks)


def test_dependabot_watches_what_there_is():
    updates = parsed(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "pip"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_questions(path):
    form = parsed(path)
    assert form["name"]
    assert form["description"]
    questions = [item for item in form["body"] if item["type"] != "markdown"]
    assert any(item.get("validations", {}).get("required") for item in questions)
    assert len({item["id"] for item in questions}) == len(questions)
    assert all(item["attributes"]["label"] for item in questions)


def conda_names(requirements):
    """The same packages by the names that conda-forge gives them."""
    names = {"matplotlib": "matplotlib-base", "dask": "dask-core"}
    pairs = [re.fullmatch(r"([\w-]+)(?:\[.*\])?(>=.*)", line).groups() for line in requirements]
    return {f"{names.get(name, name)} {floor}" for name, floor in pairs}


def test_conda_needs_what_pip_needs():
    document = parsed(ROOT / "conda" / "recipe.yaml")
    run = {f"python {PROJECT['requires-python']}", *conda_names(PROJECT["dependencies"])}
    assert set(document["requirements"]["run"]) == run
    extras = [line for name in ("plot", "cli", "onnx", "dask") for line in extra(name)]
    assert set(document["requirements"]["run_constraints"]) == conda_names(extras)
    assert set(document["about"]["license_file"]) == set(PROJECT["license-files"])


def test_conda_builds_as_pip_does():
    document = parsed(ROOT / "conda" / "recipe.yaml")
    builders = {line.replace(" ", "") for line in document["requirements"]["host"]} - {"python", "pip"}
    assert builders == set(PYPROJECT["build-system"]["requires"])
    # For one platform, and tried: without a compiler the package would be complete but for its kernels.
    assert document["requirements"]["build"] == ["${{ compiler('c') }}"]
    assert "noarch" not in document["build"]
    assert "exclusivity.kernels._compiled" in document["tests"][0]["python"]["imports"]


def test_the_wheels_of_a_release_are_compiled_and_tried():
    """Built with the oldest Python; the newest takes the same wheel, as it is for both."""
    settings = PYPROJECT["tool"]["cibuildwheel"]
    assert settings["build"] == [f"cp{python.replace('.', '')}-*" for python in (PYTHONS[0], PYTHONS[-1])]
    assert any("assert compiled" in command for command in settings["test-command"])
    wheels = parsed(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["wheels"]
    assert any(step.get("uses", "").startswith("pypa/cibuildwheel@") for step in wheels["steps"])
    systems = wheels["strategy"]["matrix"]["os"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}
    assert "ubuntu-24.04-arm" in systems


def test_what_is_published_is_what_was_kept():
    """The sdist of the checks, and wheels of all platforms; the wheel of the checks is for their machine."""
    release = parsed(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    steps = [step for name in ("build", "wheels", "publish") for step in release[name]["steps"]]
    kept = [step["with"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert [files["path"] for files in kept] == ["dist/*.tar.gz", "wheelhouse/*.whl"]
    assert all(files["name"].startswith("dist-") for files in kept)
    (taken,) = [step["with"] for step in steps if "download-artifact" in step.get("uses", "")]
    assert taken == {"pattern": "dist-*", "path": "dist/", "merge-multiple": True}


def test_a_change_of_the_compiled_part_is_installed():
    """An editable install compiles once: make has to know what it was made from."""
    listed = re.search(r"^INSTALLED_FROM := (.*)$", MAKEFILE, re.MULTILINE).group(1)
    assert listed == "pyproject.toml setup.py $(wildcard src/exclusivity/kernels/*.[ch])"
    stamps = re.findall(r"^(\.venv\S*/\.\w+): (.*)$", MAKEFILE, re.MULTILINE)
    assert len(stamps) == 8
    assert all("$(INSTALLED_FROM)" in needs.split() for _, needs in stamps)


def extra(name):
    return PROJECT["optional-dependencies"][name]


def test_one_version_everywhere():
    said = CHECK_RELEASE["found"](ROOT, CHECK_RELEASE["VERSION_LINES"])
    del said["CHANGELOG.md"]  # has a dated heading once there is a release
    assert set(said.values()) == {__version__}
    assert parsed(ROOT / "CITATION.cff")["version"] == __version__


class TestReleaseCheck:
    @pytest.fixture
    def release(self, tmp_path):
        """A folder whose files agree on 1.2.3."""
        files = {
            "src/exclusivity/__init__.py": '__version__ = "1.2.3"\n',
            "CHANGELOG.md": "## [Unreleased]\n\n## [1.2.3] - 2030-01-02\n\n## [1.2.2] - 2029-01-02\n",
            "CITATION.cff": "version: 1.2.3\ndate-released: 2030-01-02\n",
            "conda/recipe.yaml": 'context:\n  version: "1.2.3"\n',
            "pyproject.toml": '[project.urls]\nSource = "https://example.org"\n',
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    def test_files_that_agree(self, release):
        assert CHECK_RELEASE["problems"](release, "v1.2.3") == []

    @pytest.mark.parametrize(
        ("name", "old", "new", "words"),
        [
            ("src/exclusivity/__init__.py", "1.2.3", "1.2.4", "__init__.py says 1.2.4"),
            ("CHANGELOG.md", "[1.2.3] - 2030-01-02", "[1.2.3]", "CHANGELOG.md says 1.2.2"),
            ("CHANGELOG.md", "2030-01-02", "2030-01-03", "the day of the release"),
            ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff says 1.2.2"),
            ("CITATION.cff", "date-released", "date", "CITATION.cff says nothing"),
            ("conda/recipe.yaml", "1.2.3", "1.2.2", "recipe.yaml says 1.2.2"),
            ("pyproject.toml", "Source", "Paper", "has no Source"),
        ],
    )
    def test_files_that_do_not(self, release, name, old, new, words):
        path = release / name
        path.write_text(path.read_text().replace(old, new, 1))
        assert words in "\n".join(CHECK_RELEASE["problems"](release, "v1.2.3"))

    @pytest.mark.parametrize("tag", ["1.2.3", "v1.2.4", "vv1.2.3"])
    def test_tags_that_do_not(self, release, tag):
        assert CHECK_RELEASE["problems"](release, tag)

    def test_what_the_command_answers(self, capsys):
        assert CHECK_RELEASE["main"]([]) == 2
        assert CHECK_RELEASE["main"](["v0"]) == 1
        assert "__init__.py says" in capsys.readouterr().err


def test_make_reads_its_file_as_we_do(capfd):
    """``make -n`` prints what a target would run, without running it."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    import subprocess

    run = subprocess.run(  # noqa: S603
        [make, "--no-print-directory", "-n", "release-check", "TAG=v9"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip().endswith("scripts/check_release.py v9")
