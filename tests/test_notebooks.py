"""The notebooks that the gallery offers: made from the examples as the site makes them, and run by cells."""

import ast
import json
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """By the name of its example, each as the JSON document that a reader downloads."""
    gallery = pytest.importorskip("sphinx_gallery")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook, save_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    assert gallery.__version__
    folder = tmp_path_factory.mktemp("notebooks")
    made = {}
    for example in EXAMPLES:
        _, blocks = split_code_and_text_blocks(str(example))
        file = folder / f"{example.stem}.ipynb"
        save_notebook(jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(folder)), str(file))
        made[example.stem] = json.loads(file.read_text(encoding="utf-8"))
    return made


def code(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", [example.stem for example in EXAMPLES])
def test_a_notebook_is_its_example_in_cells(notebooks, name):
    """So it runs where the example does: the same statements, and nothing that only a script has."""
    example = next(example for example in EXAMPLES if example.stem == name)
    script = ast.parse(example.read_text(encoding="utf-8")).body[1:]  # without its docstring
    cells = [ast.parse(source) for source in code(notebooks[name])]
    assert len(cells) >= 3, "a notebook in one piece is a script"
    statements = [statement for cell in cells for statement in cell.body]
    assert [ast.dump(statement) for statement in statements] == [ast.dump(node) for node in script]
    names = {node.id for cell in cells for node in ast.walk(cell) if isinstance(node, ast.Name)}
    modules = {
        alias.name for cell in cells for node in ast.walk(cell) for alias in getattr(node, "names", [])
    }
    assert not names & {"__file__", "__name__"}
    assert "sys" not in modules


@pytest.mark.parametrize("name", [example.stem for example in EXAMPLES])
def test_a_notebook_explains_its_cells(notebooks, name):
    cells = notebooks[name]["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert "".join(cells[0]["source"]).lstrip().startswith("# ")
    assert sum(cell["cell_type"] == "markdown" for cell in cells) >= 3


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_a_notebook_runs(notebooks, capsys, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    try:
        for number, source in enumerate(code(notebooks["quickstart"])):
            exec(compile(source, f"cell {number}", "exec"), namespace)  # noqa: S102 -- our own example
        assert plt.get_fignums()
    finally:
        plt.close("all")
    assert "relative duality gap" in capsys.readouterr().out
