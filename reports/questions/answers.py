"""The table of questions: the pages that answer each, or what the plan would need."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from reports.forecasts.actions import LEAST_DAYS, has_days_forecast
from reports.questions.facts import Facts, Links
from reports.scenario.query import LEAST_DAYS as LEAST_SCENARIO_DAYS

STUDY_FILE: Final = "reference/study-file.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a plan gives no answer, or not the best one.

    keys : of the study file, which another plan would set or leave out
    chapter, anchor : of the help, about these keys
    """

    why: str
    keys: tuple[str, ...]
    chapter: str = STUDY_FILE
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question, the pages of the study that answer it, and what is missing."""

    question: str
    links: Links
    missing: Missing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`links` are empty where the plan has no answer; then `missing` says why."""

    text: Promise
    links: Callable[[Facts], Links]
    missing: Callable[[Facts], Missing | None]


def answers(facts: Facts) -> list[Answer]:
    """Return an answer for each question, in a fixed order."""
    return [
        Answer(question=str(each.text), links=each.links(facts), missing=each.missing(facts))
        for each in QUESTIONS
    ]


def _one_day(facts: Facts) -> Missing | None:
    if facts.study.days > 1:
        return None
    why = gettext("The study has only one day, but this question needs at least two.")
    return Missing(why=why, keys=("days",), anchor="study")


def _without_noise(facts: Facts) -> Missing | None:
    if not facts.is_noisy:
        return None
    why = gettext(
        "The study has presence noise, so the figures for this question would be sums or differences of "
        "noisy counts. This question needs a plan without presence noise."
    )
    return Missing(why=why, keys=("presence_epsilon",), chapter="presence.md", anchor="presence-noise")


def _no_categories(facts: Facts) -> Missing | None:
    if facts.single:
        return None
    why = gettext("All indicators are numbers. This question needs an indicator with categories.")
    return Missing(why=why, keys=("categories",), anchor="indicator")


def _not_over_days(facts: Facts) -> Missing | None:
    if not facts.single:
        return _no_categories(facts)
    limited = [each.shown_name for each in facts.single if each not in facts.over_days]
    if facts.study.days == 1 or not limited:
        return _one_day(facts)
    why = gettext(
        "Only single days are available for: %(names)s. Each person reports on only some of the days "
        "they are present. Figures for a date range would need reports for all of those days."
    ) % {"names": ", ".join(limited)}
    if facts.spec.has_streams:
        return Missing(why=why, keys=("window_days",), anchor="streams")
    return Missing(why=why, keys=("max_values",), anchor="indicator")


def _slot_links(facts: Facts) -> Links:
    return facts.page("presence", gettext("Presence by time")) if facts.has_slots else []


def _no_slots(facts: Facts) -> Missing | None:
    if facts.has_slots:
        return None
    why = gettext(
        "The study counts people only for whole days. This question needs time slots and an area with zones."
    )
    return Missing(why=why, keys=("[slots]", "[area] zones"), anchor="slots")


def _no_zones(facts: Facts) -> Missing | None:
    if facts.of_zones:
        return None
    why = gettext(
        "No indicator uses the zones of the area as its categories. This question needs zones and an "
        "indicator that gives each person's main zone by night or by day."
    )
    keys = ('derive = "night_zone"', 'derive = "main_zone"', "[area] zones")
    return Missing(why=why, keys=keys, chapter="daily_values.md", anchor="nights")


def _flow_links(facts: Facts) -> Links:
    return facts.page("flows", gettext("Flows")) if facts.pairs and not facts.is_noisy else []


def _no_flows(facts: Facts) -> Missing | None:
    if facts.is_noisy or facts.pairs:
        return _without_noise(facts)
    why = gettext(
        "Each person reports on only one indicator, so two places of the same person cannot be linked "
        "afterwards. This question needs either an indicator for moves between zones, or a joint indicator "
        "that combines two places. At least one of the two places must be a zone of the area."
    )
    keys = ("parts", 'derive = "moves"', "[area] zones")
    return Missing(why=why, keys=keys, chapter="compare.md", anchor="flows")


def _no_visits(facts: Facts) -> Missing | None:
    if facts.visited:
        return None
    why = gettext(
        "This study has no indicator of all zones that a person visits in a day. This question needs such "
        "an indicator, and an area with zones."
    )
    keys = ('derive = "visited_zones"', 'derive = "visited_pairs"', "[area] zones")
    return Missing(why=why, keys=keys, chapter="compare.md", anchor="visited-zones")


def _crosstab_links(facts: Facts) -> Links:
    return facts.page("crosstab", gettext("Cross-tabulation")) if facts.joints and not facts.is_noisy else []


def _no_crosstab(facts: Facts) -> Missing | None:
    if facts.is_noisy or facts.joints:
        return _without_noise(facts)
    why = gettext(
        "Each person reports on only one indicator, so two attributes of the same person cannot be linked "
        "afterwards. This question needs a joint indicator that combines the attributes."
    )
    return Missing(why=why, keys=("parts",), chapter="compare.md", anchor="cross-tabulations")


def _no_numbers(facts: Facts) -> Missing | None:
    if facts.numbers:
        return None
    why = gettext(
        "All answers are categories, which have no mean. This question needs a numeric indicator, such as "
        "the length of a visit in minutes, and a plan without presence noise."
    )
    return Missing(why=why, keys=('kind = "number"',), anchor="numbers")


def _no_means(facts: Facts) -> Missing | None:
    if facts.means:
        return None
    why = gettext(
        "This question needs two things: an indicator that records a number together with a zone or "
        "a category, and a plan without presence noise."
    )
    return Missing(why=why, keys=('kind = "number"', "parts"), anchor="numbers")


def _scenario_links(facts: Facts) -> Links:
    if facts.study.days < LEAST_SCENARIO_DAYS or not facts.counts_all_days:
        return []
    return facts.page("scenario_study", gettext("Presence scenarios"))


def _not_exact(facts: Facts) -> Missing | None:
    if facts.study.days < LEAST_SCENARIO_DAYS or "visits" in facts.spec.tallies:
        return _one_day(facts)
    if not facts.counts_all_days:
        why = gettext(
            "Each person is counted only on a limited number of days: the first days on which they "
            "are present. Longer stays are therefore not recorded."
        )
        return Missing(why=why, keys=("presence_days",), chapter="presence.md", anchor="presence-noise")
    why = gettext(
        "The answers are lower and upper bounds instead of exact numbers, because the plan does not count "
        "how many days each person was present. A plan without presence noise can count these days."
    )
    return Missing(why=why, keys=('tallies = ["visits"]',), anchor="plan")


def _movement_links(facts: Facts) -> Links:
    is_possible = facts.study.days > 1 and not facts.is_noisy
    return facts.pages("movement", facts.single) if is_possible else []


def _no_zone_map(facts: Facts) -> Missing | None:
    if facts.mapped or facts.has_slots:
        return None
    why = gettext(
        "No indicator uses zones with known boundaries as its categories. This question needs an area "
        "with a zone file. It also needs either time slots or an indicator with zones as its categories."
    )
    return Missing(why=why, keys=("[area] zones", "[slots]"), anchor="area")


def _place_links(facts: Facts) -> Links:
    return facts.page("maps", gettext("Maps of places")) if facts.spec.location else []


def _no_places(facts: Facts) -> Missing | None:
    if facts.spec.location:
        return None
    why = gettext(
        "People report only categories, not places. This question needs a plan with reported places "
        "and without presence noise."
    )
    return Missing(why=why, keys=("[location]",), anchor="location")


def _forecast_links(facts: Facts) -> Links:
    of_days = facts.page("forecast", gettext("Forecast")) if has_days_forecast(facts.study) else []
    of_slots = facts.page("presence_forecast", gettext("Forecast by time slot")) if facts.has_slots else []
    return of_days + of_slots


def _no_forecast(facts: Facts) -> Missing | None:
    if has_days_forecast(facts.study):
        return None
    numbers = {"least": LEAST_DAYS, "days": facts.study.days}
    why = (
        gettext("A forecast by day needs a study of at least %(least)d days. This study has %(days)d.")
        % numbers
    )
    return Missing(why=why, keys=("days", "[slots]"), anchor="study")


QUESTIONS: Final = (
    Question(
        text=_("How many visitors are there, by day and over several days?"),
        links=lambda facts: facts.page("study", gettext("Visitors per day")),
        missing=lambda _facts: None,
    ),
    Question(
        text=_("What share of visitors is in each category, by day and over several days?"),
        links=lambda facts: facts.pages("indicator", facts.single),
        missing=_not_over_days,
    ),
    Question(
        text=_("How many people are in each zone in each half hour?"), links=_slot_links, missing=_no_slots
    ),
    Question(
        text=_("Where do people sleep, or where do they spend the day?"),
        links=lambda facts: facts.pages("indicator", facts.of_zones),
        missing=_no_zones,
    ),
    Question(
        text=_("How many people go from one zone to another, for example commuters?"),
        links=_flow_links,
        missing=_no_flows,
    ),
    Question(
        text=_("Which zones do people visit in a day, and which zones do they visit on the same day?"),
        links=lambda facts: facts.page("visited", gettext("Visited zones")) if facts.visited else [],
        missing=_no_visits,
    ),
    Question(
        text=_("How are two attributes, such as age and region, related?"),
        links=_crosstab_links,
        missing=_no_crosstab,
    ),
    Question(
        text=_("What is the average value, for example the mean length of a visit?"),
        links=lambda facts: facts.pages("indicator", facts.numbers),
        missing=_no_numbers,
    ),
    Question(
        text=_("What is the average value in each zone or category?"),
        links=lambda facts: facts.pages("indicator", facts.means),
        missing=_no_means,
    ),
    Question(
        text=_("How many people are present on exactly N days?"), links=_scenario_links, missing=_not_exact
    ),
    Question(
        text=_("How many visitors are new, and how many return?"),
        links=_movement_links,
        missing=lambda facts: _one_day(facts) or _without_noise(facts) or _no_categories(facts),
    ),
    Question(
        text=_("What do the figures look like on a map of zones?"),
        links=lambda facts: facts.pages("indicator", facts.mapped) + _slot_links(facts),
        missing=_no_zone_map,
    ),
    Question(text=_("Where are people within a zone?"), links=_place_links, missing=_no_places),
    Question(
        text=_("How many visitors are expected in the near future?"),
        links=_forecast_links,
        missing=_no_forecast,
    ),
    Question(
        text=_("Do two days or two date ranges differ?"),
        links=lambda facts: (
            facts.pages("compare", facts.single) + facts.pages("indicator", facts.numbers)
            if facts.study.days > 1
            else []
        ),
        missing=_one_day,
    ),
)
