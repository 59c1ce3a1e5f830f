"""What the tests of solver "newton" share as fixtures."""

import pytest

from exclusivity.solvers import newton as solver_module


@pytest.fixture
def without_kernel(monkeypatch):
    """Sparse rows are solved by the methods in Python, as where no compiler was."""
    monkeypatch.setattr(solver_module, "has_kernel", lambda problem: False)
