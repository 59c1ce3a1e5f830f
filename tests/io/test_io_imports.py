"""What `exclusivity.io` imports, and when."""

import subprocess
import sys

import pytest

EXTRAS = ("pandas", "pyarrow", "onnx")


def run(code):
    command = [sys.executable, "-c", f"import sys\nEXTRAS = {EXTRAS}\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["exclusivity", "exclusivity.io"])
def test_no_extra_is_imported(module):
    run(f"import {module}\nassert not [name for name in (*EXTRAS, 'sklearn') if name in sys.modules]")


def test_models_need_no_extra():
    """As where none of them is installed."""
    run("""
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from pathlib import Path
from tempfile import TemporaryDirectory
from exclusivity import ERMClassifier
from exclusivity.io import load_model, save_model, to_onnx
with TemporaryDirectory() as folder:
    save_model(ERMClassifier(2).fit([[0.0], [1.0]], [0, 1]), Path(folder) / "m.erm")
    model = load_model(Path(folder) / "m.erm")
try:
    to_onnx(model)
except ImportError as error:
    assert "exclusivity[onnx]" in str(error)
else:
    raise AssertionError("a graph without onnx")
""")


def test_unknown_names():
    run("""
import exclusivity.io
try:
    exclusivity.io.read_model
except AttributeError as error:
    assert "has no attribute 'read_model'" in str(error)
else:
    raise AssertionError("a name that is not there")
""")
