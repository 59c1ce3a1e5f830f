"""The peak of this process's memory, and how to start it anew."""

from __future__ import annotations

from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Forget the peak so far where the system can (Linux)."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_bytes() -> int:
    """The largest resident memory since the last reset (Linux), or since the process began.

    Examples
    --------
    >>> peak_bytes() > 1_000_000
    True
    """
    try:
        return int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        import resource  # noqa: PLC0415 -- not on every system
        import sys  # noqa: PLC0415

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
