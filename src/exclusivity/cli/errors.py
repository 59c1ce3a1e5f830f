"""Errors that a person at a terminal can act on."""

from __future__ import annotations


class CommandError(Exception):
    """Ends a command with a message instead of a traceback."""
