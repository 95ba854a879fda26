"""A study with one of each figure that a tile can show, and a board of its analyst."""

import numpy as np
import pytest

from ldp.privacy.joint import joint_codes
from reports.boards.actions import create_board
from reports.models import Study
from tests.reports import report_factory as factory
from tests.reports.flows.conftest import DAY_ZONE, SIZES
from tests.reports.kept import made_once
from tests.reports.map_factory import HOME, area


@made_once
def rich_study() -> Study:
    trip = factory.joint("trip", HOME, DAY_ZONE, kind="daily")
    asked = factory.GENDER, factory.MANY, factory.LENGTH, HOME, DAY_ZONE, trip
    study = factory.create(*asked, area=area(), epsilon="6")
    people = factory.crowd(study, n=6000)
    homes, zones = people.static["home"], people.daily["day_zone"].T
    people.daily["trip"] = np.stack([joint_codes([homes, each], sizes=SIZES) for each in zones], axis=1)
    factory.publish(study, people)
    return study


@pytest.fixture
def rich(db) -> Study:
    return rich_study()


@pytest.fixture
def board(rich, analyst):
    return create_board(rich, name="For the mayor", by=analyst)
