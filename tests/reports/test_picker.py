"""Choosing a window: the triangle of short studies, the calendar of long ones."""

import pytest

from reports import selectors
from reports.picker import build_picker
from reports.selectors import Window
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def test_long_studies_have_a_calendar_with_each_day_and_each_week() -> None:
    study = factory.create(days=20)  # from Thursday 30 May
    factory.publish(study, factory.crowd(study))
    visitors = selectors.visitor_unions(study)
    indicator = study.indicators.get(slug="gender")
    picker = build_picker(indicator, visitors=visitors, current=Window(2, 6))
    assert picker.rows == ()
    days = [day for week in picker.weeks for day in week.days if day is not None]
    assert [day.window for day in days] == selectors.single_days_of(study)
    assert [day.visitors for day in days] == [visitors[day, day] for day in range(1, 21)]
    assert [week.whole.window for week in picker.weeks] == [Window(1, 4), Window(5, 11), Window(12, 18),
                                                            Window(19, 20)]  # fmt: skip
    assert [day.window.first_day for day in days if day.is_inside] == [2, 3, 4, 5, 6]
    assert (picker.shorter.window, picker.longer.window) == (Window(2, 5), Window(2, 7))


def test_days_without_unions_have_no_weeks_to_choose() -> None:
    half = factory.indicator(
        "stay", "short", "long", kind="daily", column=None, derive="visit_duration", max_values=2
    )
    study = factory.create(half, days=20)
    picker = build_picker(
        study.indicators.get(), visitors=selectors.visitor_unions(study), current=Window(20, 20)
    )
    assert all(week.whole is None for week in picker.weeks if sum(map(bool, week.days)) > 1)
    assert (picker.longer, picker.shorter, picker.earlier.window) == (None, None, Window(19, 19))


def test_short_studies_have_a_triangle_and_no_calendar() -> None:
    study = factory.create(days=14)
    picker = build_picker(
        study.indicators.get(slug="gender"), visitors=selectors.visitor_unions(study), current=None
    )
    assert (len(picker.rows), picker.weeks) == (14, ())
    assert sum(cell is not None for row in picker.rows for cell in row.cells) == 14 * 15 // 2
