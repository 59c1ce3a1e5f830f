"""Compiled loops over sparse rows and for the robust additive model; without them both are slower."""

from __future__ import annotations

import os
from types import ModuleType

__all__ = ["compiled"]

compiled: ModuleType | None = None
"""The extension module; None where no compiler made it, or where ``EXCLUSIVITY_PURE=1`` asks for none."""

if os.environ.get("EXCLUSIVITY_PURE", "") in ("", "0"):
    try:
        from exclusivity.kernels import _compiled as compiled
    except ImportError:  # no compiler where it was installed
        compiled = None
