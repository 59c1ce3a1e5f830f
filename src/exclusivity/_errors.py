"""Errors that name the parameter they are about."""

from __future__ import annotations


class ParameterError(ValueError):
    """A parameter has a value that cannot be used, alone or with the other parameters.

    Parameters
    ----------
    parameter : str
        Its name, for callers that have another name for it, such as an option of the command line.
    message : str
        What is wrong, and what to do.

    Examples
    --------
    >>> error = ParameterError("tol", "tol must be above 0; got 0.")
    >>> error.parameter, str(error)
    ('tol', 'tol must be above 0; got 0.')
    """

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(parameter, message)  # both, so that the error can be pickled
        self.parameter = parameter

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[1])


class ParameterTypeError(ParameterError, TypeError):
    """A parameter has a value of a wrong type."""
