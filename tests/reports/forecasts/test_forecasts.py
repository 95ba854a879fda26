"""Forecasts rest on published figures only, are computed once for each state, and follow holidays."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from ldp.estimation.estimators import pure_variance
from ldp.estimation.noisy_estimators import UnionNoise, noise_variance
from ldp.estimation.series.forecast import forecast
from ldp.estimation.series.grid import Series
from ldp.estimation.series.levels import DayFigures, forecast_days
from ldp.estimation.series.smoothing import wave_variances
from ldp.estimation.unions import union
from reports.estimates.loading import Loaded, load
from reports.estimates.models import DayNote
from reports.estimates.queries import indicator_reports, single_days_of
from reports.forecasts import actions, computing
from reports.forecasts.actions import Kind, State, is_current, kept_forecast, refresh
from reports.forecasts.holidays import holidays_between
from reports.forecasts.models import KeptForecast
from reports.forecasts.queries import day_forecast, slot_forecast
from reports.forecasts.series import category_days, slot_series, visitor_days
from reports.slots.queries import presence
from tests.reports import report_factory as factory
from tests.reports import slot_factory

pytestmark = pytest.mark.django_db


def published(days=4, *, slots=None, **changes):
    return slot_factory.published(slots=slots or days * 48, days=days, **changes)


def test_the_series_has_a_row_for_each_slot_and_gaps_for_days_that_no_one_knows() -> None:
    study = published(4, slots=170)
    DayNote.objects.create(study=study, day=2, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    found = slot_series(presence(study))
    values = found.series.values
    assert (values.shape, found.closed, found.n_known) == ((170, 6), 170, 170 - 48)
    assert np.isnan(values[48:96]).all()
    assert values[96:].tolist() == presence(study).counts[96:].tolist()
    assert found.series.first_slot == 3 * 48  # Thursday
    assert (found.horizon(170), found.horizon(171 + 46)) == (1, 48)


@pytest.mark.parametrize(
    ("first", "slots_of_day", "gap", "row_of_3_am"),
    [(date(2024, 3, 30), 46, [52, 53], 54), (date(2024, 10, 26), 50, [], 54)],
)
def test_on_days_of_clock_changes_a_time_of_day_keeps_its_row(first, slots_of_day, gap, row_of_3_am) -> None:
    study = slot_factory.create(first_day=first)
    slot_factory.publish(study, np.arange(6 * (96 + slots_of_day)).reshape(-1, 6) + 1000)
    found = slot_series(presence(study))
    values, clock = found.series.values, found.clock
    assert len(values) == 3 * 48
    assert np.flatnonzero(np.isnan(values[:, 0])).tolist() == gap
    assert clock.of_day(2).stop - clock.of_day(2).start == slots_of_day
    times = [presence(study).starts_at(slot).hour for slot in range(48, 48 + slots_of_day)]
    slot = 48 + max(place for place, hour in enumerate(times) if hour == 3) - 1
    assert found.rows[slot] == row_of_3_am
    assert values[row_of_3_am, 0] == 1000 + 6 * slot
    assert found.rows[-1] == (len(found.rows) - slots_of_day) // 48 * 48 + 47


def test_what_is_kept_is_the_forecast_of_the_library_for_the_next_day() -> None:
    study = published(6, slots=5 * 48 + 10)
    assert refresh(study) == 1
    found, series = slot_forecast(study), slot_series(presence(study))
    expected = forecast(series.series, horizons=range(1, 49))
    assert found.is_current
    assert (found.method, found.row.n_known, found.last_slot) == ("mean step", 250, 249)
    assert found.targets == list(range(250, 298))  # past the end of the study, too
    shown = [[found.expected(place, zone).value for zone in found.found.zones] for place in range(48)]
    assert np.array(shown) == pytest.approx(expected.values, abs=1e-5)
    assert found.expected(0, found.found.zones[0]).ends == (None, None)  # too few days for intervals
    assert [each.ahead for each in found.judged(found.found.zones[0])] == [1, 2, 4, 12, 48]
    assert f"{found.starts_at(297):%d %H:%M}" == "05 04:30"


def test_a_long_history_gives_intervals_around_each_value_scaled_like_the_counts() -> None:
    study = slot_factory.create(days=24, market_share=Decimal("0.5"))
    counts = slot_factory.counts_of(study, slot_factory.daily, slots=24 * 48)
    slot_factory.publish(study, counts + np.random.default_rng(1).normal(0, 40, counts.shape).round())
    refresh(study)
    found = slot_forecast(study, days=2)
    zone = found.found.zones[0]
    inner, outer = found.expected(0, zone).ends
    result = found.row.result
    assert found.method == "ridge"
    assert outer[0] <= inner[0] < found.expected(0, zone).value < inner[1] <= outer[1]
    assert outer[1] - outer[0] == pytest.approx(2 * 2 * result["half_widths"][1][0][0])
    assert found.expected(0, zone).value == pytest.approx(2 * result["values"][0][0])
    judged = found.judged(zone)[0]
    assert judged.days == 7
    assert judged.rmse[0] == pytest.approx(2 * result["backtest"][0]["rmse"][0][0])
    assert 0 <= judged.coverage[0] <= judged.coverage[1] <= 1


def test_a_forecast_is_computed_again_only_when_something_was_published() -> None:
    study = published(5, slots=4 * 48)
    assert refresh(study) == 1
    first = kept_forecast(study, Kind.SLOTS)
    assert (refresh(study), is_current(first)) == (0, True)
    slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=1))
    stale = slot_forecast(study)
    assert not stale.is_current
    assert stale.last_slot == 191  # the old one stays until the new one is there
    assert refresh(study) == 1
    newer = kept_forecast(study, Kind.SLOTS)
    assert newer.result["closed"] == 193
    assert newer.result["backtest"] == first.result["backtest"]  # of the same whole days


def test_a_backtest_is_computed_again_after_a_whole_day(monkeypatch) -> None:
    study = published(6, slots=5 * 48 - 1)
    refresh(study)
    judged = []
    monkeypatch.setattr(computing, "_judged", lambda found: judged.append(found.closed) or [])
    for n in (1, 1):
        slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=n))
        refresh(study)
    assert judged == [240]


def test_a_result_of_older_figures_never_replaces_a_newer_one(monkeypatch) -> None:
    study = published(5, slots=4 * 48)

    def meanwhile(_row):
        monkeypatch.undo()
        slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=1))
        assert refresh(study) == 1
        return {"closed": 192, "n_known": 192}

    monkeypatch.setattr(actions, "_result", meanwhile)
    refresh(study)
    assert kept_forecast(study, Kind.SLOTS).result["closed"] == 193


def test_an_error_is_marked_and_tried_again(monkeypatch) -> None:
    study = published(4)
    monkeypatch.setattr(actions, "_result", lambda _row: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        refresh(study)
    assert KeptForecast.objects.get().state == State.FAILED
    monkeypatch.undo()
    assert refresh(study) == 1
    assert KeptForecast.objects.get().state == State.DONE


def test_nothing_published_is_no_forecast_and_no_error() -> None:
    study = slot_factory.create()
    assert refresh(study) == 1
    found = slot_forecast(study)
    assert (found.targets, found.row.n_known) == ([], 0)


def test_days_are_forecast_where_a_study_has_two_of_each_weekday() -> None:
    assert refresh(factory.published(factory.GENDER, days=13, slug="short")) == 0
    study = factory.published(factory.GENDER, days=16)
    assert refresh(study) == 2
    (visitors,) = day_forecast(study, None).series
    assert visitors.known == [each for (named,) in [visitor_days(study)] for each in named.figures.values]
    assert len(visitors.expected) == 7
    assert day_forecast(study, None).date(0) == date(2024, 6, 15)
    gender = study.indicators.get()
    shares = day_forecast(study, gender)
    assert [each.name for each in shares.series] == gender.categories
    assert shares.series[0].judged.days > 0
    (low, high) = shares.series[0].expected[0].ends[1]
    assert low < shares.series[0].expected[0].value < high


def test_shares_of_equal_days_weigh_the_same_and_exact_totals_have_no_variance() -> None:
    study = factory.published(factory.GENDER, days=14, gap=3)
    (visitors,) = visitor_days(study)
    assert not visitors.figures.variances.any()
    assert np.flatnonzero(np.isnan(visitors.figures.values)).tolist() == [2]
    reports = indicator_reports(study.indicators.get(), single_days_of(study))
    shares = category_days(study.indicators.get())[0].figures
    assert shares.values[0] == reports[0].estimates[0].frequency
    assert np.isnan(shares.values[2])
    n_reports = np.array([each.n_reports for each in reports])
    errors = np.array([each.estimates[0].std_error or 0 for each in reports])
    known = n_reports > 0
    assert np.ptp((n_reports * errors**2)[known]) > 1e-2
    assert np.ptp((n_reports * shares.variances)[known]) < 1e-6


def shares_and_variances(indicator) -> tuple[np.ndarray, np.ndarray]:
    named = [each.figures for each in category_days(indicator)]
    return np.array([each.values for each in named]).T, np.array([each.variances for each in named]).T


def days_of(indicator) -> tuple[Loaded, np.ndarray, np.ndarray]:
    """Tallies of an indicator, codes of each day, and its visitors."""
    (loaded,) = load([indicator])
    days = range(1, indicator.study.days + 1)
    codes = [union(loaded.codes, first_day=day, last_day=day) for day in days]
    visitors = [int(union(loaded.visitors, first_day=day, last_day=day)) for day in days]
    return loaded, np.array(codes), np.array(visitors)


def weighted(shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.clip((weights * shares).sum(axis=0) / weights.sum(axis=0), 0, 1)


@pytest.mark.parametrize("report", [None, "wave"])
def test_days_of_a_number_are_weighed_at_the_mean_of_all_days(report) -> None:
    scale = factory.SCALE if report is None else replace(factory.SCALE, report=report)
    size = replace(factory.LENGTH, slug="size", kind="static", column="size", derive=None, scale=scale)
    study = factory.published(size, factory.GENDER, epsilon="2", n=6000, days=14)
    shares, variances = shares_and_variances(study.indicators.get(slug="size"))
    loaded, codes, visitors = days_of(study.indicators.get(slug="size"))
    if report is None:
        reports = codes[:, ::2] + codes[:, 1::2]
        expected = pure_variance(
            weighted(shares, reports),
            n_reports=reports,
            n_population=visitors[:, None],
            channel=loaded.channel,
        )
    else:
        expected = wave_variances(codes, n_visitors=visitors, channel=loaded.channel)
    assert shares.shape == (14, 4)
    assert variances == pytest.approx(expected)


def test_days_with_presence_noise_are_weighed_at_the_mean_of_all_days() -> None:
    """The total of day t is that of t noisy cells."""
    study = factory.create_noisy(presence_days=14, days=14)
    factory.close(study, factory.crowd(study, n=4000), first=1, last=14)
    shares, variances = shares_and_variances(study.indicators.get(slug="gender"))
    loaded, codes, visitors = days_of(study.indicators.get(slug="gender"))
    n = codes.sum(axis=1)[:, None]
    known = ~np.isnan(shares).any(axis=1)
    assert known.sum() > 5
    mean = weighted(shares[known], n[known])
    sizes = {"n_reports": n, "n_population": np.maximum(visitors[:, None], n), "channel": loaded.channel}
    of_answers = pure_variance(mean, **sizes)
    for day in np.flatnonzero(known):
        noise = UnionNoise(channel=loaded.noise.channel, n_cells=int(day) + 1)
        of_noise = noise_variance(mean, n_reports=float(n[day, 0]), noise=noise, channel=loaded.channel)
        assert variances[day] == pytest.approx(of_answers[day] + of_noise)


BASTILLE = date(2026, 7, 14)  # a Tuesday
DAY = 12


@pytest.mark.parametrize(
    ("asked", "timezone", "found"),
    [("", "Europe/Paris", set()), ("FR", "UTC", {BASTILLE}), ("timezone", "Europe/Paris", {BASTILLE}),
     ("timezone", "Europe/Madrid", set()), ("timezone", "UTC", set()), ("XX", "Europe/Paris", set())],
)  # fmt: skip
def test_a_setting_or_the_time_zone_names_the_country(settings, asked, timezone, found) -> None:
    settings.MOBILITY_HOLIDAYS = asked
    assert holidays_between(date(2026, 7, 1), 31, timezone=timezone) == found


@pytest.mark.django_db
def test_a_study_counts_its_holidays_as_sundays_and_a_changed_setting_is_a_new_forecast(settings) -> None:
    slots = slot_factory.published(days=16, slots=48, first_day=date(2026, 7, 10))
    days = factory.published(factory.GENDER, days=16, first_day=date(2026, 7, 10), slug="days")
    assert slot_series(presence(slots)).series.sundays == frozenset()
    refresh(days)
    row = kept_forecast(days, "days")
    assert is_current(row)
    settings.MOBILITY_HOLIDAYS = "timezone"
    assert slot_series(presence(slots)).series.sundays == {4}
    assert visitor_days(days)[0].figures.weekdays[:9].tolist() == [4, 5, 6, 0, 6, 2, 3, 4, 5]
    assert not is_current(row)


def test_a_holiday_to_come_is_forecast_like_a_sunday() -> None:
    weekly = np.array([70.0, 71, 72, 73, 74, 40, 20])
    weekdays = np.arange(42) % 7
    weekdays[36] = 6  # a Tuesday
    figures = DayFigures(values=np.tile(weekly, 5), variances=np.zeros(35), weekdays=weekdays)
    assert forecast_days(figures, days=2).values == pytest.approx([70, 20], abs=0.05)


def test_the_clock_of_a_holiday_is_that_of_a_sunday() -> None:
    given = {"slots_per_day": DAY, "first_slot": DAY, "sundays": frozenset({1, 3})}
    series = Series(values=np.ones((3 * DAY, 1)), **given)
    rows = np.array([0, DAY + 2, 2 * DAY + 2, 3 * DAY + 5])
    assert series.slots_of_week(rows).tolist() == [DAY, 6 * DAY + 2, 3 * DAY + 2, 6 * DAY + 5]
    assert series.until(DAY).sundays == {1, 3}


def test_holidays_move_a_forecast_of_slots_towards_sundays() -> None:
    random = np.random.default_rng(1)
    slots = np.arange(70 * DAY)
    low = (slots // DAY) % 7 == 6
    rhythm = 1000 + 50 * np.sin(2 * np.pi * slots / DAY) - 300 * low
    values = (rhythm + random.normal(0, 5, len(slots)))[:, None]
    plain = Series(values=values, slots_per_day=DAY)
    aware = Series(values=values, slots_per_day=DAY, sundays=frozenset({70}))
    assert forecast(aware, horizons=[4]).values[0, 0] < forecast(plain, horizons=[4]).values[0, 0] - 10
