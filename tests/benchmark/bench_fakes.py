"""Peers that a child process can import: exact, hanging, broken and absent."""

import os
import time

import numpy as np

from exclusivity.benchmark import Peer, Setting, Solution

HANGS_AT = 2.0


def tiny():
    """Two rows, 1 and -1. For p = 1 the optimum at cost C >= 1/2 is w = 1, b = 0: objective 1/2."""
    return np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])


def _exact(X, y, setting: Setting):
    """w = 1 - step: the objective at cost 1 is (1 - step)^2 / 2 + 2 step."""
    return lambda: Solution(np.full((X.shape[1], 1), 1 - setting.step), np.zeros(1))


def _hangs(X, y, setting: Setting):
    def fit():
        if setting.step == HANGS_AT and X.shape[0] == 2:
            time.sleep(600)
        return Solution(np.zeros((X.shape[1], 1)), np.zeros(1))

    return fit


def _breaks(X, y, setting: Setting):
    raise RuntimeError("no such luck")


def _which_process(X, y, setting: Setting):
    return lambda: Solution(np.full((X.shape[1], 1), float(os.getpid())), np.array([float(os.getppid())]))


def fake(name, prepare, ladder, **more):
    return Peer(name, f"a fake that {name}", "numpy", "none", prepare, ladder, ladder, "steps", **more)


def _half(X, y, setting):
    return [np.full(X.shape[0], 0.5)]


EXACT = fake("exact", _exact, (0.5, 0.1, 0.0), certify=_half)
FAR = fake("stays far", _exact, (0.9, 0.8, 0.7))
HANGS = fake("hangs", _hangs, (1.0, HANGS_AT, 3.0))
BREAKS = fake("breaks", _breaks, (1.0, 2.0))
YARDSTICK = fake("minimises something else", _exact, (0.5,), yardstick=True)
PROCESS = fake("says where it runs", _which_process, (1.0,))
ABSENT = Peer("absent", "never there", "surely_not_installed", "none", _exact)
NOT_A_PEER = 3
