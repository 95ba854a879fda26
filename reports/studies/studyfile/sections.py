"""The sections [study], [study.visitor], [extract], [subscribers], [plan] and, but for its files, [slots]."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, cast, get_args
from zoneinfo import available_timezones

import numpy as np
from django.utils.translation import gettext_noop as _

from ldp.privacy.first_reports import HASH_CELLS, HashCells
from ldp.privacy.plans import MAX_EVENT_DAYS, MAX_EVENTS, PRESENCE_TALLIES, Mechanism, PresenceTally
from ldp.privacy.slots import DAY_MINUTES, MAX_DELTA, MIN_DELTA, SLOT_MINUTES
from ldp.protocols.channels import Unit
from reports.base.reasons import Reason
from reports.studies.slots import SlotClock
from reports.studies.studyfile.category_shares import SHARE, read_category_shares
from reports.studies.studyfile.definition import (
    ATTRIBUTES,
    DEFAULT_POPULATION,
    EVENT_POPULATION,
    Attributes,
    ExtractProfile,
    PlanDefinition,
    SubscriberExtract,
    VisitorRule,
)
from reports.studies.studyfile.formats import DELIMITERS, ISO, Delimiter, timestamp_problem
from reports.studies.studyfile.problems import nearest
from reports.studies.studyfile.slots_definition import SlotsDefinition
from reports.studies.studyfile.table import NumberRule, Table

MAX_DAYS = 62
STUDY_KINDS = ("visitors", "events")
DEFAULT_ZONE_COLUMN = "zone"
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
UNITS: tuple[Unit, ...] = get_args(Unit)
RESERVED_STUDIES = frozenset({"create", "batches", "drafts", "simulator"})
FIRST_DAY_FROM, FIRST_DAY_TO = date(1990, 1, 1), date(2199, 12, 31)
KEY_UNTIL_TO = date(2299, 12, 31)
MAX_SUBSCRIBERS = 10**10  # more than there are people
MAX_CHANGE_HOURS = 3  # of clocks in a day; only the date line moves them further
MAX_COUNT = 2**31 - 1  # limit of the database column
SLOT_NOISES = ("gaussian", "none")
DEFAULT_HOLD_MINUTES, DEFAULT_DELTA = 60, Decimal("0.000001")
MAX_CLOSE_AFTER_MINUTES = 7 * DAY_MINUTES
DELTA_DECIMALS = 12
MAX_SLOT_COUNTS = 4_000_000  # of a study: 32 MB

_NOT_SCALED = _("must be absent in a study of events: events are counted, and not scaled to other events")
_ONLY_OF_EVENTS = _('must be absent: only a study with kind = "events" has it')
NO_CELLS = _("needs [area] with the cells in which people are seen")
NO_ZONES = _("needs [area] with zones: name a file of zones, or give the cells a column zone")
ANY_TIME = VisitorRule(min_minutes=0, from_minute=0, to_minute=DAY_MINUTES - 1)

EPSILON = NumberRule(
    _("must be a number > 0 and <= 20 (above 20 an answer is as good as the raw value)"),
    lambda x: 0 < x <= 20,
)
WEIGHT = NumberRule(_("must be a number from 0.001 to 1000"), lambda x: Decimal("0.001") <= x <= 1000)
CAP = NumberRule(_("must be a number > 0 and <= 9999"), lambda x: 0 < x <= 9999)
PRESENCE = NumberRule(_("must be a number from 0.001 to 20"), lambda x: Decimal("0.001") <= x <= 20)
DELTA = NumberRule(
    _("must be a number from 0.000000000001 to 0.01"), lambda x: MIN_DELTA <= Fraction(x) <= MAX_DELTA
)
BAD_SHARE = NumberRule(_("must be a number from 0 to 1"), lambda x: 0 <= x <= 1)
DEFAULT_BAD_SHARE = Decimal("0.05")


def read_study(table: Table, *, default_min_publication: int) -> dict[str, Any]:
    """Return the fields of a StudyDefinition that [study] sets."""
    of_events = table.has("kind") and table.choice("kind", STUDY_KINDS) == "events"
    if of_events:
        _refuse_of_people(table)
    visitor = None if of_events else table.table("visitor")
    facts: dict[str, Any] = {
        "slug": table.slug("slug", reserved=RESERVED_STUDIES),
        "name": table.text("name"),
        "name_fr": table.text("name_fr", default="") or None,
        "timezone": _read_timezone(table),
        "first_day": table.day("first_day", low=FIRST_DAY_FROM, high=FIRST_DAY_TO),
        "days": table.integer("days", low=1, high=MAX_EVENT_DAYS if of_events else MAX_DAYS),
        "expected_subscribers": None,
        "market_share": table.decimal("market_share", SHARE, required=False) or Decimal(1),
        "min_publication": table.integer(
            "min_publication", low=1, high=MAX_COUNT, default=default_min_publication
        ),
        "small_cell": table.integer("small_cell", low=0, high=MAX_COUNT, default=0),
        "small_category": table.integer("small_category", low=0, high=MAX_COUNT, default=0) or None,
        "visitor": _read_visitor(visitor) if visitor else ANY_TIME if of_events else None,
        "population": EVENT_POPULATION if of_events else DEFAULT_POPULATION,
        "key_until": None,
        "units": "events" if of_events else None,
    }
    if table.has("expected_subscribers"):
        facts["expected_subscribers"] = table.integer("expected_subscribers", low=1, high=MAX_SUBSCRIBERS)
    if table.has("population"):
        facts["population"] = table.slug("population", reserved=frozenset())
    if table.has("key_until"):
        last_day = facts["first_day"] + timedelta(days=facts["days"] - 1)
        facts["key_until"] = table.day("key_until", low=last_day, high=KEY_UNTIL_TO)
    facts["category_shares"] = read_category_shares(table)
    table.finish()
    return facts


def _refuse_of_people(table: Table) -> None:
    """Refuse what has no meaning for events, unless it says no more than its default."""
    table.refuse("visitor", _("must be absent in a study of events: every row in the area counts"))
    if table.values.get("category_shares"):
        table.add("category_shares", _NOT_SCALED, table.values["category_shares"])
    rules = {
        "market_share": (1, _NOT_SCALED),
        "small_cell": (
            0,
            _(
                "must be absent in a study of events: periods are sums of days, so that a hidden day follows "
                "from the others"
            ),
        ),
        "small_category": (
            0,
            _(
                "must be absent in a study of events: periods are sums of days, so that a hidden category "
                "follows from the others"
            ),
        ),
    }
    for key, (default, rule) in rules.items():
        if table.values.get(key, default) != default:
            table.add(key, rule, table.values[key])


@cache
def known_timezones() -> frozenset[str]:
    """Return the names of time zones that a study may have; finding them on the disk takes 10 ms."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


def _read_timezone(table: Table) -> str:
    name, known = table.text("timezone"), known_timezones()
    if name and name not in known:
        rule = _("must be a name of the IANA time zone database, such as Europe/Paris%(near)s")
        table.add("timezone", Reason(rule, near=nearest(name, known=known)), name)
    return name


def _read_visitor(table: Table) -> VisitorRule:
    start, end = table.clock("from"), table.clock("to")
    longest = DAY_MINUTES
    if start is not None and end is not None:
        if start < end:
            longest = end - start  # a longer minimum would make every day empty
        else:
            table.add(
                "to", Reason(_("must be later than %(key)s"), key=table.key("from")), table.values["to"]
            )
    min_minutes = table.integer("min_minutes", low=0, high=longest)
    table.finish()
    return VisitorRule(min_minutes=min_minutes, from_minute=start or 0, to_minute=end or 0)


def read_extract(table: Table, *, has_area: bool, of_events: bool = False) -> ExtractProfile:
    """Return the names of the columns and how they are written; without an area no cell is needed."""
    if of_events:
        table.refuse(
            "subscriber",
            _("must be absent in a study of events: name the column of their IDs as event"),
        )
    else:
        for key in ("event", "person"):
            table.refuse(key, _ONLY_OF_EVENTS)
    profile = ExtractProfile(
        subscriber=table.text("event", default="") if of_events else table.text("subscriber"),
        timestamp=table.text("timestamp"),
        cell=table.text("cell") if has_area or table.has("cell") else None,
        max_bad_share=read_bad_share(table, default=DEFAULT_BAD_SHARE),
        delimiter=read_delimiter(table),
        timestamp_format=read_timestamp_format(table),
        attributes=_read_attributes(table),
        person=table.text("person") if table.has("person") else None,
    )
    if of_events and profile.attributes != "inline":
        table.add(
            "attributes",
            _("must be inline in a study of events: each row says all"),
            profile.attributes,
        )
    table.finish()
    return profile


def read_subscribers(table: Table) -> SubscriberExtract:
    """Return how extracts of subscribers are read."""
    extract = SubscriberExtract(
        subscriber=table.text("subscriber"),
        max_bad_share=read_bad_share(table, default=DEFAULT_BAD_SHARE),
        delimiter=read_delimiter(table),
    )
    table.finish()
    return extract


def read_bad_share(table: Table, *, default: Decimal) -> Decimal:
    """Return the share of rejected rows above which a file is refused."""
    share = table.decimal("max_bad_share", BAD_SHARE, required=False)
    return default if share is None else share


def read_delimiter(table: Table) -> Delimiter | None:
    """Return what separates the columns, or None when it is found from the header."""
    return cast(Delimiter, table.choice("delimiter", DELIMITERS)) if table.has("delimiter") else None


def read_timestamp_format(table: Table, *, default: str = ISO) -> str:
    """Return how timestamps are written."""
    text = table.text("timestamp_format", default=default)
    problem = timestamp_problem(text)
    if problem:
        table.add("timestamp_format", problem, text)
        return ISO
    return text


def _read_attributes(table: Table) -> Attributes:
    return cast(Attributes, table.choice("attributes", ATTRIBUTES)) if table.has("attributes") else "inline"


def read_plan(table: Table) -> PlanDefinition:
    """Return the plan as typed."""
    has_noise = table.has("presence_epsilon") or table.has("presence_days")
    plan = PlanDefinition(
        mechanism=cast(Mechanism, table.choice("mechanism", MECHANISMS)),
        unit=cast(Unit, table.choice("unit", UNITS)),
        epsilon=table.decimal("epsilon", EPSILON) or Decimal(1),
        epsilon_profile=table.decimal("epsilon_profile", CAP, required=False),
        presence_epsilon=table.decimal("presence_epsilon", PRESENCE, required=has_noise),
        presence_days=table.integer("presence_days", low=1, high=MAX_DAYS) if has_noise else None,
        tallies=_read_tallies(table),
        epsilon_first=table.decimal("epsilon_first", EPSILON, required=False),
        hash_cells=_read_hash_cells(table),
        window_days=table.integer("window_days", low=1, high=MAX_DAYS) if table.has("window_days") else None,
        max_events=table.integer("max_events", low=1, high=MAX_EVENTS) if table.has("max_events") else None,
        class_column=table.text("class_column", default="") or None,
        discloses_values=_read_discloses(table),
    )
    table.finish()
    return plan


def _read_discloses(table: Table) -> bool | None:
    value = table.raw("discloses_values", required=False)
    if value not in (None, True, False):
        table.add("discloses_values", _("must be true or false"), value)
    return True if value is True else None


def check_person(root: Table, *, person: str | None, max_events: int | None, of_events: bool) -> None:
    """Note a problem unless a limit for people and the column of people come together, and with events."""
    if max_events is not None and not of_events:
        root.add("plan.max_events", _ONLY_OF_EVENTS, max_events)
    elif max_events is not None and person is None:
        root.add("extract.person", _("must name the column of people: max_events limits each of them"))
    elif person is not None and max_events is None:
        root.add("plan.max_events", _("must be present: without it the column of people has no use"))


def _read_hash_cells(table: Table) -> HashCells | None:
    return cast(HashCells, table.choice("hash_cells", HASH_CELLS)) if table.has("hash_cells") else None


def _read_tallies(table: Table) -> tuple[PresenceTally, ...]:
    """Return the further tallies of presence, in the order of the library."""
    names = table.raw("tallies", required=False)
    if names is None:
        return ()
    if not isinstance(names, list) or not all(name in PRESENCE_TALLIES for name in names):
        table.add(
            "tallies",
            Reason(_("must be a list of some of %(names)s"), names=", ".join(PRESENCE_TALLIES)),
            names,
        )
        return ()
    return tuple(name for name in PRESENCE_TALLIES if name in names)


def read_slots(table: Table) -> SlotsDefinition:
    """Return presence by slot as typed, but without the levels, which are files."""
    minutes = _read_slot_minutes(table)
    most = DAY_MINUTES // minutes
    epsilon_day, delta = _read_slot_noise(table)
    has_delay = table.has("close_after_minutes")
    slots = SlotsDefinition(
        minutes=minutes,
        hold_minutes=table.integer("hold_minutes", low=0, high=DAY_MINUTES, default=DEFAULT_HOLD_MINUTES),
        slots_per_day=table.integer("slots_per_day", low=1, high=most, default=most),
        epsilon_day=epsilon_day,
        delta=delta,
        close_after_minutes=(
            table.integer("close_after_minutes", low=0, high=MAX_CLOSE_AFTER_MINUTES) if has_delay else None
        ),
    )
    table.has("levels")
    table.finish()
    return slots


def check_days_of_slots(table: Table, *, timezone: str, first_day: date, days: int) -> None:
    """Note a problem if the date line was moved during a study: a date is left out, or lasts two days."""
    clock = SlotClock.of(timezone, first_day=first_day, days=days, minutes=60)
    hours = np.bincount(clock.day, minlength=days + 1)[1:]
    for day in np.flatnonzero(np.abs(hours - 24) > MAX_CHANGE_HOURS).tolist():
        on = first_day + timedelta(days=day)
        table.add(
            "minutes",
            Reason(
                _("needs days of about 24 hours, and %(day)s has %(hours)s in %(timezone)s"),
                day=str(on),
                hours=str(hours[day]),
                timezone=timezone,
            ),
        )


def check_slots(table: Table, slots: SlotsDefinition, *, n_zones: int, days: int) -> None:
    """Note a problem if a study has no zones, or more counts than fit."""
    if not n_zones:
        table.add("minutes", NO_ZONES)
    zones = n_zones + sum(len(level.zones) for level in slots.levels)
    if days * DAY_MINUTES // slots.minutes * zones > MAX_SLOT_COUNTS:
        rule = Reason(
            _("must be longer: %(zones)s zones on %(days)s days have more than %(most)s counts"),
            zones=str(zones),
            days=days,
            most=str(MAX_SLOT_COUNTS),
        )
        table.add("minutes", rule, slots.minutes)


def _read_slot_minutes(table: Table) -> int:
    value = table.raw("minutes")
    if isinstance(value, int) and value in SLOT_MINUTES:
        return value
    if value is not None:
        table.add(
            "minutes", Reason(_("must be one of %(names)s"), names=", ".join(map(str, SLOT_MINUTES))), value
        )
    return SLOT_MINUTES[0]


def _read_slot_noise(table: Table) -> tuple[Decimal | None, Decimal | None]:
    """Return epsilon_day and delta; None where the counts are exact."""
    noise = table.choice("noise", SLOT_NOISES) if table.has("noise") else SLOT_NOISES[0]
    if noise == "none":
        for key in ("epsilon_day", "delta"):
            table.refuse(key, _('must be absent with noise = "none": the counts are exact'))
        return None, None
    epsilon_day = table.decimal("epsilon_day", PRESENCE)
    delta = table.decimal("delta", DELTA, required=False, decimals=DELTA_DECIMALS)
    return epsilon_day or Decimal(1), DEFAULT_DELTA if delta is None else delta
