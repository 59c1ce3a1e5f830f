"""Differences between scikit-learn versions, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin where that does not exist yet."""

        def set_callbacks(self, *callbacks: object) -> Any:
            """Refuse: there is no callback protocol to speak.

            Parameters
            ----------
            *callbacks : callback instances
                What scikit-learn 1.9 would call during a fit.
            """
            raise RuntimeError("Callbacks need scikit-learn 1.9 or newer (pip install -U scikit-learn).")

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is: no callbacks, no context."""
        return method


# The decorator stands between ``fit`` and its caller.
CALLER_OF_FIT = 3 if hasattr(CallbackSupportMixin, "_init_callback_context") else 2

__all__ = ["CALLER_OF_FIT", "CallbackSupportMixin", "with_callbacks"]
