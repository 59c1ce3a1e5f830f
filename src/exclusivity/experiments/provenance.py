"""What a result was made with: versions, machine, settings."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

from exclusivity import __version__
from exclusivity.versions import installed_versions

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of everything that computes; a package that is not installed is left out."""
    return {
        "exclusivity": __version__,
        "python": platform.python_version(),
        **installed_versions(_PACKAGES),
    }


def computing_versions() -> dict[str, str]:
    """The versions that can change a number; matplotlib only draws."""
    return {name: text for name, text in versions().items() if name != "matplotlib"}


def available_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """System, processor and CPUs; nothing that names the user or the host."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cpus": available_cpus(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def today() -> str:
    """The date in UTC."""
    return datetime.now(UTC).date().isoformat()
