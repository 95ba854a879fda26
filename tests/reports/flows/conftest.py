"""A study whose people sleep in one zone and spend each day in another."""

from typing import Any

import numpy as np

from ldp.privacy.joint import joint_codes
from reports.models import Study
from tests.reports import report_factory as factory
from tests.reports.map_factory import HOME, ZONES, area
from tests.reports.report_factory import People

DAY_ZONE = factory.indicator("day_zone", *ZONES, kind="daily", column=None, derive="main_zone")
SIZES = (4, 4)


def published(*, n: int = 6000, with_area: bool = True, **changes: Any) -> tuple[Study, People]:
    trip = factory.joint("trip", HOME, DAY_ZONE, kind="daily")
    place = area() if with_area else None
    study = factory.create(HOME, DAY_ZONE, trip, area=place, **({"epsilon": "6"} | changes))
    people = factory.crowd(study, n=n)
    homes = people.static["home"]
    people.daily["trip"] = np.stack(
        [joint_codes([homes, zones], sizes=SIZES) for zones in people.daily["day_zone"].T], axis=1
    )
    factory.publish(study, people)
    return study, people


def true_days(people: People, *, first: int, last: int) -> np.ndarray:
    found = np.zeros(25, np.int64)
    for day in range(first, last + 1):
        is_there = people.bitmaps >> np.uint64(day - 1) & np.uint64(1) == 1
        found += np.bincount(people.daily["trip"][is_there, day - 1], minlength=25)
    return found.reshape(5, 5)
