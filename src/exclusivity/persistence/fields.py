"""Objects of the header, read key by key: what is missing, of the wrong type, or left over is an error."""

from __future__ import annotations

from typing import Any

from exclusivity.persistence.errors import DAMAGED, NEWER, ModelFormatError, shown


class Fields:
    """A JSON object on its way into a model.

    Examples
    --------
    >>> fields = Fields({"members": 3}, "the classifier")
    >>> fields.integer("members", 1, 10)
    3
    >>> fields.finish()
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ModelFormatError(f"{where} is {shown(value)}; expected an object. {DAMAGED}")
        self._left, self.where = dict(value), where

    def take(self, name: str) -> Any:
        """The value of a key that must be there."""
        if name not in self._left:
            raise ModelFormatError(f"{self.where} has no {name!r}. {DAMAGED}")
        return self._left.pop(name)

    def has(self, name: str) -> bool:
        """Whether there is a key that a file may lack, not taken yet."""
        return name in self._left

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        if self._left:
            raise ModelFormatError(f"{self.where} has the unknown key {shown(min(self._left))}. {NEWER}")

    def wrong(self, name: str, value: object, expected: str) -> ModelFormatError:
        """The error for a value that cannot be."""
        return ModelFormatError(f"{name!r} of {self.where} is {shown(value)}; expected {expected}. {DAMAGED}")

    def text(self, name: str, allowed: tuple[str, ...] | None = None) -> str:
        """A string, one of ``allowed`` where that is given."""
        value = self.take(name)
        if not isinstance(value, str) or (allowed is not None and value not in allowed):
            words = "a text" if allowed is None else " or ".join(map(repr, allowed))
            raise self.wrong(name, value, words)
        return value

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "true or false")
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        """A whole number in a range."""
        value = self.take(name)
        if not _is_integer(value, least, most):
            raise self.wrong(name, value, f"a whole number from {least} to {most}")
        return int(value)

    def integers(self, name: str, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers in a range."""
        values = self.items(name)
        if not all(_is_integer(value, least, most) for value in values):
            raise self.wrong(name, values, f"whole numbers from {least} to {most}")
        return tuple(values)

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        values = self.take(name)
        if not isinstance(values, list):
            raise self.wrong(name, values, "a list")
        return values


def _is_integer(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
