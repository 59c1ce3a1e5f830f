"""Names cut to the room that a picture has, so that different ones stay different."""

from __future__ import annotations

from collections.abc import Sequence

_GONE = "…"


def short_names(names: Sequence[str], most: Sequence[int]) -> list[str]:
    """Names cut to so many letters each; of those that would look alike the parts that they share go first.

    Examples
    --------
    >>> short_names(["sensor_of_room_1", "sensor_of_room_2", "temperature"], [10, 10, 10])
    ['sensor_o…1', 'sensor_o…2', 'temperatu…']
    >>> short_names(["grade 1 of all", "grade 2 of all"], [6, 6])
    ['gra…1…', 'gra…2…']
    """
    least = min(most, default=0)
    looks = [_cut(name, least) for name in names]
    found = []
    for name, look, room in zip(names, looks, most, strict=True):
        alike = {other for other, seen in zip(names, looks, strict=True) if seen == look}
        is_short = len(name) <= room or len(alike) == 1
        found.append(_cut(name, room) if is_short else _where_it_differs(name, sorted(alike), room))
    return found


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}{_GONE}"


def _where_it_differs(name: str, alike: list[str], most: int) -> str:
    """The name without what it shares with the others, as far as there is no room for it."""
    start = _n_shared(alike)
    end = _n_shared([other[start:][::-1] for other in alike])
    differs, rest = name[start : len(name) - end], _GONE * (end > 0)
    room = most - len(differs) - len(rest)
    before = name[:start] if start <= room else name[: max(room - 1, 0)] + _GONE
    return _cut(before + differs + rest, most)


def _n_shared(names: list[str]) -> int:
    """How many letters all of them begin with; a number is not taken apart."""
    count = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        count += 1
    while count and names[0][count - 1].isdigit():
        count -= 1
    return count
