"""Display of a page's numbers: chart, table or map, order, measure, kind of value; all in the address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple, Protocol, Self
from urllib.parse import urlencode

from django.http import QueryDict

from reports.base.status import Status
from reports.estimates.queries import Estimate, Window, WindowReport, single_days_of
from reports.studies.models import Indicator
from reports.studies.queries import has_unions
from reports.studies.studyfile.hours import are_hours

MAX_LINES = 8  # more cannot be distinguished
MAX_MULTIPLES = 24  # small charts on a page
_FIRST_LINES = 5  # without a choice: bands of more hide each other

Choices = dict[str, tuple[str, ...]]
VALUES: Final = "values"
GROUP: Final = "group"
GROUPS: Final = "groups"
VALUES_CHOICES: Final = ("consistent", "unbiased")
CHOICES: Final[Choices] = {
    "view": ("both", "chart", "table", "map"),
    "order": ("sorted", "natural"),
    "measure": ("frequency", "visitors"),
    VALUES: VALUES_CHOICES,
    "layer": ("estimate", "uncertainty"),
    "classes": ("round", "quantile", "equal"),
    GROUP: ("all", "found", GROUPS),
}
DAYS_CHOICES: Final[Choices] = {
    "show": ("daily", "cumulative"),
    "form": ("multiples", "lines"),
    "measure": ("frequency", "visitors"),
    VALUES: VALUES_CHOICES,
}


class Addressed(Protocol):
    """Options that a page keeps in its address while its days change."""

    def query(self, kept: str) -> str: ...


class ViewOfValues(Protocol):
    """A view that an address asks for with one kind of values."""

    @property
    def values(self) -> str: ...

    def query(self, kept: str = "", **changes: str) -> str: ...


@dataclass(frozen=True, kw_only=True)
class _Options:
    """A value for each name of `choices`; the first is the default, and the address leaves it out."""

    choices: ClassVar[Choices]

    @classmethod
    def from_query(cls, query: QueryDict) -> Self:
        """Read the options of an address; what is missing or unknown has its default."""
        asked = {name: query.get(name, "") for name in cls.choices}
        return cls(**{name: value for name, value in asked.items() if value in cls.choices[name]})

    @property
    def chosen(self) -> dict[str, str]:
        """Return the options that differ from the default."""
        values = {name: str(getattr(self, name)) for name in self.choices}
        return {name: value for name, value in values.items() if value != self.choices[name][0]}

    def query(self, kept: str, **changes: str) -> str:
        """Part of an address: what is `kept`, such as a window, and these options with changes."""
        chosen = replace(self, **changes).chosen
        return "&".join(part for part in (kept, urlencode(chosen)) if part)


@dataclass(frozen=True, kw_only=True)
class ReportOptions(_Options):
    """Options of the page of one window.

    order : "sorted" by what is shown, the largest first; "natural" is that of the plan
    values : "consistent" ones add up to 100%; "unbiased" estimates may be negative
    layer : what the colours of a map stand for: the estimate, or half of the width of its interval
    classes : bounds of a map's colours: "round" numbers, "quantile" for as many zones each, or "equal" widths
    group : "all" categories, those "found" and the sum of the others, or the study's "groups"
    """

    choices = CHOICES
    view: str = "both"
    order: str = "sorted"
    measure: str = "frequency"
    values: str = "consistent"
    layer: str = "estimate"
    classes: str = "round"
    group: str = "all"


@dataclass(frozen=True, kw_only=True)
class DaysOptions(_Options):
    """Options of the page of all days.

    show : "daily" = each day for itself, "cumulative" = the union of the days from the first one on
    form : a small chart per category ("multiples"), or "lines" in one chart
    values : as of `ReportOptions`
    """

    choices = DAYS_CHOICES
    show: str = "daily"
    form: str = "multiples"
    measure: str = "frequency"
    values: str = "consistent"


class ShownValue(NamedTuple):
    """Shown values of an estimate: shares, or visitors; low and high belong to the unbiased one."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def may_be_zero(self) -> bool:
        """True where the interval includes zero or less: charts draw such a bar pale."""
        return self.low is not None and self.low <= 0


def shown_value(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> ShownValue:
    """Value and interval of an estimate in the measure that was asked for; None where no one answered."""
    if options.measure == "frequency":
        return shown_share(estimate, values=options.values)
    return shown_visitors(report, estimate, values=options.values)


def shown_share(estimate: Estimate, *, values: str) -> ShownValue:
    """Share and interval of an estimate, unbiased or consistent."""
    value = estimate.consistent if values == "consistent" else estimate.frequency
    return ShownValue(value, estimate.ci_low, estimate.ci_high)


def shown_visitors(report: WindowReport, estimate: Estimate, *, values: str) -> ShownValue:
    """Visitors and interval of an estimate, unbiased or consistent."""
    value = estimate.visitors
    if values == "consistent" and estimate.consistent is not None and report.scale is not None:
        value = estimate.consistent * report.scale
    return ShownValue(value, estimate.visitors_ci_low, estimate.visitors_ci_high)


def ordered(report: WindowReport, *, options: ReportOptions) -> Sequence[Estimate]:
    """Return estimates in the requested order, hours in their own; unreliable ones come last when sorted."""
    if _is_natural(report, options):
        return report.estimates
    return _largest_first(report, options)


def largest(report: WindowReport, *, options: ReportOptions, most: int) -> Sequence[Estimate]:
    """Return the largest estimates, at most `most`, in the order of `ordered`."""
    first = _largest_first(report, options)[:most]
    return [each for each in report.estimates if each in first] if _is_natural(report, options) else first


def _is_natural(report: WindowReport, options: ReportOptions) -> bool:
    return options.order == "natural" or are_hours(report.indicator.categories)


def _largest_first(report: WindowReport, options: ReportOptions) -> list[Estimate]:
    def key(estimate: Estimate) -> tuple[bool, float, float]:
        value = shown_value(report, estimate, options=options).value
        # Consistent values of several categories may be zero: then the unbiased ones decide.
        return estimate.status != Status.OK or value is None, -(value or 0.0), -(estimate.frequency or 0.0)

    return sorted(report.estimates, key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One way to show a result differently: its choices as (label, part of an address, whether it is on)."""

    title: str
    links: tuple[tuple[str, str, bool], ...]


def switches(
    options: ReportOptions | DaysOptions,
    *,
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    choices: Choices,
    kept: str,
) -> list[Switch]:
    """A switch for each option in `titles`; every address keeps `kept`, such as the window."""
    return [
        Switch(
            title=title,
            links=tuple(
                (labels[value], options.query(kept, **{name: value}), getattr(options, name) == value)
                for value in choices[name]
            ),
        )
        for name, title in titles.items()
    ]


def windows_shown(indicator: Indicator, *, options: DaysOptions) -> list[Window]:
    """Each day; or the unions of the days 1..j, where the indicator has unions."""
    study = indicator.study
    if options.show == "cumulative" and has_unions(indicator):
        return [Window(1, day) for day in range(1, study.days + 1)]
    return single_days_of(study)


def reports_of(days: Window | None, reports: Sequence[WindowReport]) -> list[WindowReport]:
    """Reports that end on one of the days; None = all."""
    return [
        each for each in reports if days is None or days.first_day <= each.window.last_day <= days.last_day
    ]


def max_shown(options: DaysOptions) -> int:
    """Return the maximum number of categories of a chart."""
    return MAX_MULTIPLES if options.form == "multiples" else MAX_LINES


def asks_for_groups(query: QueryDict) -> bool:
    """Return whether an address asks for the groups of the study."""
    return query.get(GROUP) == GROUPS


def asked_values(query: QueryDict) -> str:
    """The kind of values that an address asks for; by default, and of an unknown one, the first."""
    asked = query.get(VALUES, "")
    return asked if asked in VALUES_CHOICES else VALUES_CHOICES[0]


def asked_categories(query: QueryDict, *, n_categories: int) -> list[int]:
    """Codes that an address names as `category`, in plan order; what is no code is left out."""
    asked = {int(text) for text in query.getlist("category") if text.isdecimal() and len(text) <= 5}
    return sorted(code for code in asked if code < n_categories)


def shown_categories(
    asked: Sequence[int], *, reports: Sequence[WindowReport], options: DaysOptions
) -> list[int]:
    """Codes of the categories to draw: those asked for, else the largest."""
    if asked:
        return list(asked[: max_shown(options)])
    if options.form == "multiples":
        return largest_categories(reports, at_most=MAX_MULTIPLES)
    return largest_categories(reports)


def largest_categories(reports: Sequence[WindowReport], *, at_most: int = _FIRST_LINES) -> list[int]:
    """Codes of the categories to draw without a choice: the largest, in the order of `largest_first`."""
    first = sorted(range(len(reports[0].estimates)), key=_sizes(reports).__getitem__, reverse=True)[:at_most]
    return [code for code in largest_first(reports) if code in first]


def largest_first(reports: Sequence[WindowReport]) -> list[int]:
    """Codes of all categories, the largest over all reports first; hours and thresholds in their order."""
    codes = list(range(len(reports[0].estimates)))
    if reports[0].cuts is not None or are_hours(reports[0].indicator.categories):
        return codes
    return sorted(codes, key=_sizes(reports).__getitem__, reverse=True)


def _sizes(reports: Sequence[WindowReport]) -> list[float]:
    columns = zip(*(report.estimates for report in reports), strict=True)
    return [sum(each.consistent or 0.0 for each in column) for column in columns]
