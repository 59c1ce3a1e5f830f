"""Names in pictures: cut to their room, and still told apart."""

import pytest

from exclusivity.inspection.short_names import short_names

SENSORS = [f"measurement_of_sensor_{number:02d}" for number in range(12)]
LEVELS = [f"level number {number} of the list" for number in range(1, 15)]


@pytest.mark.parametrize("names", [SENSORS, LEVELS, ["strongly agree with it", "strongly disagree with it"]])
@pytest.mark.parametrize("room", [8, 10, 14, 21])
def test_different_names_stay_different(names, room):
    found = short_names([*names, "no value"], [room] * (len(names) + 1))
    assert len(set(found)) == len(names) + 1
    assert max(map(len, found)) <= room


def test_rooms_may_differ():
    rooms = [21, 20, 18, 21]
    found = short_names(SENSORS[:4], rooms)
    assert all(len(name) <= room for name, room in zip(found, rooms, strict=True))
    assert [name[-2:] for name in found] == ["00", "01", "02", "03"]


def test_what_fits_stays():
    assert short_names(["age", "agent"], [5, 5]) == ["age", "agent"]
    assert short_names([], []) == []


def test_equal_names_stay_equal():
    assert short_names(["the same name", "the same name"], [8, 8]) == ["the sam…", "the sam…"]
