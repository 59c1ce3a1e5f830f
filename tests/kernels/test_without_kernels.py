"""The package without its compiled part."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """
import sys
from exclusivity import kernels
from benchmarks.workloads import text_rows
from exclusivity.objective import ERMProblem
from exclusivity.solvers import solve_newton
from exclusivity.solvers.subspace import has_kernel
assert kernels.compiled is None
assert "exclusivity.kernels._compiled" not in sys.modules
X, y = text_rows(600, 500, 10)
for p in (1, 2):
    problem = ERMProblem.build(X, y, p=p)
    assert not has_kernel(problem)
    result = solve_newton(problem, tol=1e-6)
    assert result.converged
    print(result.objective)
"""


def test_everything_is_there_but_slower():
    from benchmarks.workloads import text_rows
    from exclusivity.objective.objective import ERMProblem
    from exclusivity.solvers import solve_newton

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=os.environ | {"EXCLUSIVITY_PURE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    X, y = text_rows(600, 500, 10)
    for p, line in zip((1, 2), done.stdout.split(), strict=True):
        objective = solve_newton(ERMProblem.build(X, y, p=p), tol=1e-6).objective
        assert abs(float(line) - objective) <= 1e-6 * objective
