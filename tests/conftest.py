"""Settings for all tests."""

import os
import signal
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# `make test` has to stay quick; HYPOTHESIS_PROFILE=thorough looks 15 times as hard. Tests that need a
# number of examples of their own say so. How long an example takes says how busy the machine is, not what is
# wrong with the code: nothing may fail for it.
BUSY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=20, **BUSY)
settings.register_profile("thorough", max_examples=300, **BUSY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell's background jobs ignore Ctrl-C, and so do their children: tests that press it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """The example of callbacks needs those of scikit-learn 1.9."""
    if find_spec("sklearn.callback") is None:
        for item in items:
            if item.name == "exclusivity.callbacks.TimeLimit":
                item.add_marker(pytest.mark.skip(reason="scikit-learn calls back from 1.9 on"))
