"""What the tests of solver "newton" share as fixtures."""

import pytest

from exclusivity.solvers.newton import newton_cg


@pytest.fixture
def without_compiled_walk(monkeypatch):
    """Sparse rows are walked by the methods in Python, as where no compiler was."""
    monkeypatch.setattr(newton_cg, "has_kernel", lambda problem: False)
