"""Study files with [slots]: what is counted by slot, levels of zones that nest, and what is refused."""
# ruff: noqa: E501  (a table reads best with one rule a line)

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from shapely import box

from ldp import PlanSpec
from reports.studies.slots import SlotClock
from reports.studies.studyfile import StudyDefinition
from tests.reports.studies.geography import places
from tests.reports.studies.geography.places import EAST, WEST, frame, written
from tests.reports.studies.test_studyfile import through_json

SLOTS = "[slots]\nminutes = 30\n"
NOISY = f"{SLOTS}epsilon_day = 1.0\n"
TOWNS = frame([WEST, EAST, box(7.4, 47.6, 7.6, 47.7)], zone=["West", "East", "Far"])
BOTH, ALL = box(6.8, 47.6, 7.0, 47.7), box(6.0, 47.0, 8.0, 48.0)
# A millionth of a degree is a tenth of a metre: what programs for maps do to a border.
ROUNDED = box(6.800001, 47.6, 7.000001, 47.7)
LEVELS = 'levels = ["towns.geojson", "region.gpkg"]\n'


def given(zones=TOWNS, **levels):
    files = {f"{name}.{'gpkg' if name == 'region' else 'geojson'}": table for name, table in levels.items()}
    return {name: written(table, name) for name, table in ({"zones.gpkg": zones} | files).items()}


def parse(text=NOISY, **files):
    return places.parse(f'zones = "zones.gpkg"\n{text}', given(**files))


def problems(text=NOISY, **files):
    return places.problems(f'zones = "zones.gpkg"\n{text}', given(**files))


def test_a_section_says_what_is_counted_and_its_noise_covers_a_day_at_every_level():
    slots = parse().study.slots
    assert (slots.minutes, slots.hold_minutes, slots.slots_per_day, slots.levels) == (30, 60, 48, ())
    assert (slots.delta, slots.close_after_minutes) == (Decimal("0.000001"), None)
    more = "minutes = 60\nhold_minutes = 0\nslots_per_day = 10\ndelta = 1e-12\nclose_after_minutes = 90\n"
    study = parse(f"[slots]\nepsilon_day = 0.5\n{more}").study
    assert through_json(study) == study
    assert (study.slots.hold_minutes, study.slots.close_after_minutes) == (0, 90)
    plan = study.plan_spec()
    assert PlanSpec.from_json(plan.to_json()) == plan
    assert (plan.slots.slots_per_day, plan.slots.levels, plan.slots.delta) == (10, 1, Fraction(1, 10**12))
    assert plan.slots.noise.epsilon(days=1) <= Decimal("0.5")


@pytest.mark.parametrize(
    "zone",
    ["Asia/Kathmandu", "Pacific/Chatham", "Australia/Lord_Howe", "America/Santiago", "Pacific/Kiritimati"],
)
@pytest.mark.parametrize("minutes", [15, 120])
def test_slots_of_any_offset_and_change_of_clocks_lie_on_their_local_day(zone, minutes):
    first = date(2026, 3, 1)
    clock = SlotClock.of(zone, first_day=first, days=250, minutes=minutes)
    assert (clock.start[1:] == clock.end[:-1]).all() and (clock.end - clock.start <= minutes * 60).all()
    seconds = (*clock.start.tolist(), *(clock.end - 1).tolist())
    ends = [datetime.fromtimestamp(second, ZoneInfo(zone)).date() for second in seconds]
    assert [(day - first).days + 1 for day in ends] == [*clock.day.tolist()] * 2


def test_a_date_that_a_time_zone_leaves_out_is_refused(monkeypatch):
    apia = places.STUDY.replace('"Europe/Paris"', '"Pacific/Apia"').replace("2024-03-30", "2011-12-29")
    monkeypatch.setattr(places, "STUDY", apia)
    assert any("2011-12-30 has 0 in Pacific/Apia" in each for each in problems())


def test_without_noise_the_plan_has_none_and_without_slots_nothing_changes():
    exact = parse(f'{SLOTS}noise = "none"\n').study
    assert (exact.slots.epsilon_day, exact.plan_spec().slots.noise) == (None, None)
    assert through_json(exact) == exact
    without = parse("").study
    assert "slots" not in without.to_json() and "slots" not in without.plan_spec().to_json()
    assert StudyDefinition.from_json(without.to_json()).slots is None


def test_larger_zones_hold_those_of_the_area_up_to_rounding():
    towns = frame([ROUNDED, box(0, 0, 1, 1)], zone=["Town", "Sea"], name_fr=["Ville", None])
    parsed = parse(NOISY + LEVELS, towns=towns, region=frame([ALL], zone=["Region"]))
    low, high = parsed.study.slots.levels
    assert (low.name, low.zones, low.within, low.zones_fr) == ("towns", ("Town",), (0, 0, None), ("Ville",))
    assert (high.name, high.zones, high.within, high.zones_fr) == ("region", ("Region",), (0, 0, 0), None)
    assert [each["properties"]["zone"] for each in low.geojson["features"]] == ["Town"]
    assert parsed.notes == ["towns.geojson: features: 1 left out, as no zone of the area lies in it"]
    assert through_json(parsed.study) == parsed.study
    one_level = parse().study.plan_spec().slots
    assert parsed.study.plan_spec().slots.variance == pytest.approx(3 * one_level.variance, rel=1e-3)


ACROSS = box(6.8, 47.6, 6.95, 47.7)
BAD_LEVELS = [
    ({"towns": frame([ACROSS], zone=["Town"])}, 'towns.geojson: features: zone "Town" must hold all or nothing of zone "East" of the area, but holds 50% of it: redraw one of them, or leave this file out of slots.levels'),
    ({"towns": frame([BOTH, ACROSS], zone=["Town", "More"])}, 'towns.geojson: features: zones "Town" and "More" of towns.geojson overlap on 100% of the smaller one: draw them apart, or, if one holds the other, move it to a file of slots.levels'),
    ({"towns": frame([BOTH], zone=["West"])}, 'towns.geojson: features: must be unique over all levels, but a zone of the area has this name, got "West"'),
    ({"towns": frame([box(0, 0, 1, 1)], zone=["Sea"])}, "towns.geojson: features: must hold at least one zone of the area"),
    ({"towns": frame([BOTH], zone=["Town"]), "region": frame([WEST], zone=["Region"])}, 'region.gpkg: features: zone "Region" must hold all or nothing of zone "Town" of towns.geojson, but holds 50% of it: redraw one of them, or leave this file out of slots.levels'),
    ({"zones": frame([WEST, EAST, BOTH], zone=["West", "East", "Both"])}, 'study.toml: slots.levels: zones "West" and "Both" of the area overlap on 100% of the smaller one: draw them apart, or, if one holds the other, move it to a file of slots.levels'),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), BAD_LEVELS)
def test_zones_that_overlap_without_nesting_are_refused_with_the_names_of_both(files, expected):
    names = [name for name in ("towns", "region") if name in files]
    levels = "".join(f'"{name}.{"gpkg" if name == "region" else "geojson"}",' for name in names)
    assert expected in problems(NOISY + (f"levels = [{levels}]\n" if names else ""), **files)


BAD_KEYS = [
    ("minutes = 20", "slots.minutes: must be one of 15, 30, 60, 120, got 20"),
    ('minutes = 30\nnoise = "none"\ndelta = 0.1', 'slots.epsilon_day: must be absent with noise = "none": the counts are exact, got 1.0'),
    ('minutes = 30\nnoise = "laplace"', 'slots.noise: must be one of gaussian, none, got "laplace"'),
    ("minutes = 30\ndelta = 0.1", "slots.delta: must be a number from 0.000000000001 to 0.01, got 0.1"),
    ("minutes = 60\nslots_per_day = 25", "slots.slots_per_day: must be a whole number from 1 to 24, got 25"),
    ("minutes = 30\nhold_minutes = 1441", "slots.hold_minutes: must be a whole number from 0 to 1440, got 1441"),
    ("minutes = 30\nclose_after_minutes = -1", "slots.close_after_minutes: must be a whole number from 0 to 10080, got -1"),
    ('minutes = 30\nlevels = ["a.gpkg", "a.zip"]', 'slots.levels[2]: must have a unique name, apart from the ending, got "a.zip"'),
    ('minutes = 30\nlevels = ["a.gpkg"]', 'slots.levels[1]: must name a file that is given together with the study file, got "a.gpkg"'),
    ("minutes = 30\nlevels = []", "slots.levels: must be a list of 1 to 3 names of files, got a list"),
    ("minutes = 30\nhold_minute = 1", 'slots.hold_minute: unknown key, did you mean "hold_minutes"?'),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), BAD_KEYS)
def test_a_broken_rule_is_named(lines, expected):
    assert f"study.toml: {expected}" in problems(f"[slots]\nepsilon_day = 1.0\n{lines}\n")


def test_slots_need_zones_and_their_counts_have_a_bound():
    assert "study.toml: slots.minutes: needs [area] with zones" in places.problems(NOISY, {})[0]
    cells = "cell_id,lon,lat,zone\n" + "".join(f"C{n},6.8,47.6,Z{n}\n" for n in range(13_889))
    assert places.problems("[slots]\nminutes = 15\nepsilon_day = 1\n", {}, cells=cells) == [
        "study.toml: slots.minutes: must be longer: 13889 zones on 3 days have more than 4000000 counts, got 15"
    ]
    text = f'{NOISY}levels = ["towns.geojson"]\n'
    (found,) = places.problems(text, given(towns=frame([ALL], zone=["All"])), cells=cells)
    assert found.startswith("study.toml: slots.levels: needs area.zones, a file of shapes: larger zones")
