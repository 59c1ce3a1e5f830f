"""Settings for all tests."""

import os

from hypothesis import settings

# `make test` has to stay quick; HYPOTHESIS_PROFILE=thorough looks ten times as hard. Tests that need a
# number of examples of their own say so.
settings.register_profile("quick", max_examples=20)
settings.register_profile("thorough", max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
