"""Measure solvers and certificates beside their peers. Not installed: run from the repository's root."""
