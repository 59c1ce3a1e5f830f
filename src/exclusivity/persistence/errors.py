"""What can be wrong with a model file."""

from __future__ import annotations


class ModelFormatError(ValueError):
    """A file that is not a model file, a damaged one, or one of a newer version.

    Attributes
    ----------
    cause : str
        What was found, what is expected, and what to do.
    file : str or None
        Its name.

    Examples
    --------
    >>> str(ModelFormatError("the file is empty.", "heart.erm"))
    'heart.erm: the file is empty.'
    """

    def __init__(self, cause: str, file: str | None = None) -> None:
        super().__init__(cause, file)
        self.cause, self.file = cause, file

    def __str__(self) -> str:
        return self.cause if self.file is None else f"{self.file}: {self.cause}"


DAMAGED = "The file is damaged or was not written by save_model; get a fresh copy or save the model again."
NEWER = "It may come from a newer version: upgrade exclusivity (pip install -U exclusivity)."


def shown(value: object) -> str:
    """A value of the file for a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
