"""Ctrl-C for tests: when it is pressed, and how long it takes to be heard."""

from __future__ import annotations

import signal
import threading
from time import monotonic, process_time

import numpy as np
import pytest

_HAS_SIGNALS = hasattr(signal, "pthread_kill") and threading.current_thread() is threading.main_thread()


def needs_signals(test):
    """For tests that press Ctrl-C; what is lost in the callbacks of others (see ``CtrlC``) is no error."""
    test = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")(test)
    reason = "needs POSIX signals and tests in the main thread"
    return pytest.mark.skipif(not _HAS_SIGNALS, reason=reason)(test)


# So long after it was heard something goes on only if the exception was lost.
LOST = 2.0


def seconds_later(seconds):
    """Whether so many seconds have passed since this was called."""
    end = monotonic() + seconds
    return lambda: monotonic() >= end


class CtrlC:
    """Sends SIGINT to the main thread as soon as ``is_time`` says so, and measures how long that takes.

    In processor time where that is less: others may use this machine too. Garbage collections and weak
    references have callbacks (of hypothesis, Dask, scikit-learn), and what is raised within one of them is
    lost, as Python says: whoever sees that nothing happens presses again, and so does this if it was heard.
    """

    def __init__(self, is_time):
        self.is_time, self.over, self.heard = is_time, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.is_time():
            if self.over.wait(0.001):
                return
        self.press()
        while not self.over.wait(LOST):
            if self.heard.is_set():
                self.press()

    def press(self):
        self.heard.clear()
        self.fired = np.array([monotonic(), process_time()])
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def hear(self, number, frame):
        self.heard.set()
        signal.default_int_handler(number, frame)

    def __enter__(self):
        self.before = signal.signal(signal.SIGINT, self.hear)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.seconds = np.min([monotonic(), process_time()] - getattr(self, "fired", np.array(np.nan)))
        self.over.set()
        self.thread.join()
        signal.signal(signal.SIGINT, self.before)
