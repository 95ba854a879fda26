"""The one place of reading: tallies in, estimates out. Pages, exports and commands all pass through here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol

import numpy as np
from django.db.models import Count, QuerySet
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import NoReportsError, all_unions, pure_frequencies, union
from ldp.estimation import windows as ldp_windows
from ldp.estimation.classes import stratified
from ldp.estimation.estimators import ENDLESS
from ldp.estimation.multiple import above_zero
from ldp.estimation.noisy_estimators import NoisyTotal
from ldp.estimation.numbers.wave import wave_survival
from ldp.estimation.partial.regions import region_frequencies, reports_of_regions
from ldp.estimation.windows import IndicatorTallies
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel
from reports.base.status import Status, estimates_status, is_suppressed, window_status
from reports.estimates.loading import Loaded, load, strata_of, tallies_of
from reports.estimates.models import DayNote
from reports.estimates.noise import Figures
from reports.estimates.small_categories import Hidden, below, hidden_categories, windows_inside
from reports.studies.models import Indicator, Study
from reports.studies.names import category_name
from reports.studies.plan_models import Plan
from reports.studies.queries import has_unions, visitors_of
from reports.studies.tally_models import VisitorTally

LEVEL = 0.95  # of every interval

Counts = NDArray[np.int64]
Window = ldp_windows.Window


class WindowError(ValueError):
    """A window that the study does not have."""


class UnionNotAvailableError(WindowError):
    """A union of days of an indicator that people answer on some days only."""


class Estimate(NamedTuple):
    """One category in one window; all but the counts are None where no one answered.

    `frequency` is unbiased and may leave [0, 1]; `consistent` is its nearest distribution. `visitors` is
    scaled to the population by the market share; a move has none. `reports` is None, too, where the
    small-cell rule suppresses the window, or the small-category rule the category. `status` says whether the
    numbers are reliable, and if not, why. `below` is the limit, scaled as `visitors`, of one that is small.
    `category_fr` is for pages only. A tuple, since a page may make thousands.
    """

    category: str
    reports: int | None
    frequency: float | None = None
    std_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    consistent: float | None = None
    visitors: float | None = None
    visitors_ci_low: float | None = None
    visitors_ci_high: float | None = None
    status: Status = Status.NOT_COLLECTED
    category_fr: str | None = None
    below: int | None = None

    @property
    def is_hidden(self) -> bool:
        """Return whether a rule for small numbers hides it."""
        return self.status in (Status.SUPPRESSED, Status.SMALL)

    @property
    def shown_category(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.category, self.category_fr)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReport:
    """All categories of an indicator in one window, with the plan that they were collected under.

    `epsilon` is the nominal one of one answer. Where `is_unary`, a report supports any number of categories,
    and those of all categories do not add up to `n_reports`. Where `has_fakes`, most reports are made up.
    `n_visitors` and `n_reports` are None where the small-cell rule suppresses the window. `notes` are
    those of its days, in their order: days with an outage may be missing from the numbers of a longer window.
    With presence noise all counts are noisy and may be negative, and `noisy_visitors` has the interval.
    `cuts` is the scale of a number, whose categories are "this cut or more".
    """

    study: Study
    indicator: Indicator
    window: Window
    first_date: date
    last_date: date
    plan: Plan
    plan_version: int
    mechanism: str
    epsilon: float
    unit: str
    is_unary: bool
    has_fakes: bool
    n_visitors: int | None
    n_reports: int | None
    estimates: tuple[Estimate, ...]
    status: Status
    notes: tuple[DayNote, ...]
    noisy_visitors: NoisyTotal | None = None
    cuts: Scale | None = None

    @property
    def scale(self) -> float | None:
        """Visitors of the population for a share of 1; None where they are suppressed."""
        return None if self.n_visitors is None else _scale(self.study, self.n_visitors)

    @property
    def is_stream(self) -> bool:
        """Return whether people answer on one day in each window, with new noise."""
        spec = self.plan.parsed
        return spec.is_stream(spec.index(self.indicator.slug))


def surely_present(report: WindowReport) -> list[Estimate] | None:
    """Categories that someone is in, the largest first; wrong for one or more of them in 5% of reports.

    None where that cannot be said: without numbers, or with presence noise on the counts.
    """
    if report.status != Status.OK or report.noisy_visitors is not None or not report.n_reports:
        return None
    spec = report.plan.parsed
    asked = spec.indicators[spec.index(report.indicator.slug)]
    if spec.classes or asked.discloses or asked.scale is not None:
        return None  # reports by several channels; shares of one number
    shown = [each for each in report.estimates if not each.is_hidden]
    if not shown:
        return []
    found = above_zero(
        np.array([each.reports for each in shown], np.int64),
        n_reports=report.n_reports,
        channel=spec.channel(spec.index(report.indicator.slug)),
        error=1 - LEVEL,
    )
    listed = [each for each, is_above in zip(shown, found, strict=True) if is_above]
    return sorted(listed, key=lambda each: -(each.frequency or 0.0))


def has_small(reports: Iterable[WindowReport]) -> bool:
    """Return whether the small-category rule hides a category."""
    return any(
        each.is_hidden
        for report in reports
        if report.study.small_category and report.status != Status.SUPPRESSED
        for each in report.estimates
    )


class WithInterval(Protocol):
    """A share with an interval."""

    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...


def mean_half_width(estimates: Sequence[WithInterval]) -> float | None:
    """Half of the width of the intervals of shares, on average; None where no one answered."""
    halves = [
        (each.ci_high - each.ci_low) / 2
        for each in estimates
        if each.ci_low is not None and each.ci_high is not None
    ]
    return sum(halves) / len(halves) if halves else None


def windows_of(study: Study) -> list[Window]:
    """All unions of consecutive days, single days included, by first and last day."""
    days = range(1, study.days + 1)
    return [Window(first, last) for first in days for last in days if first <= last]


def single_days_of(study: Study) -> list[Window]:
    return [Window(day, day) for day in range(1, study.days + 1)]


def windows_of_indicator(indicator: Indicator) -> list[Window]:
    """Windows in which the indicator can be estimated."""
    return windows_of(indicator.study) if has_unions(indicator) else single_days_of(indicator.study)


def window_from_dates(study: Study, first: date, last: date) -> Window:
    """Window of two calendar dates; WindowError when the study does not have it."""
    window = Window(study.day_of(first), study.day_of(last))
    if not 1 <= window.first_day <= window.last_day <= study.days:
        raise WindowError(
            gettext(
                "The date range must lie between %(least)s and %(most)s and must not end before it starts. "
                "Requested: %(first)s to %(last)s."
            )
            % {"least": study.first_day, "most": study.last_day, "first": first, "last": last}
        )
    return window


def window_between(study: Study, first: date | None, last: date | None) -> Window:
    """Window of two days in any order; without `last` one day, without any the whole study.

    WindowError if a day is not one of the study.
    """
    first_day = first or study.first_day
    last_day = last or (first_day if first else study.last_day)
    return window_from_dates(study, min(first_day, last_day), max(first_day, last_day))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """One line of the list of studies; `visitors` are of every window, as `visitor_unions` returns them."""

    study: Study
    n_indicators: int
    visitors: Counts
    n_visitors: int | None  # None = suppressed by the small-cell rule


def study_summaries(studies: QuerySet[Study]) -> list[StudySummary]:
    """Some studies with their notes, newest first, with their visitors over all days."""
    found = (
        studies.select_related("visitor_tally")
        .prefetch_related("day_notes")
        .annotate(n_indicators=Count("indicators"))
        .order_by("-first_day", "slug")
    )
    return [_summary(study, n_indicators=study.n_indicators) for study in found]


def _summary(study: Study, *, n_indicators: int) -> StudySummary:
    visitors = all_unions(visitors_of(study.visitor_tally))
    return StudySummary(
        study=study,
        n_indicators=n_indicators,
        visitors=visitors,
        n_visitors=shown_visitors(study, int(visitors[1, study.days])),
    )


def shown_visitors(study: Study, n_visitors: int) -> int | None:
    """Visitors of a window as pages may show them: None where the small-cell rule suppresses it."""
    return None if is_suppressed(n_visitors, small_cell=study.small_cell) else n_visitors


def visitor_unions(study: Study) -> Counts:
    """Visitors of every window, unscaled; int64 of shape (days + 1, days + 1), [first_day, last_day].

    Without the small-cell rule: `shown_visitors` applies it.
    """
    tally = VisitorTally.objects.get(study=study)
    tally.study = study
    return all_unions(visitors_of(tally))


def window_report(indicator: Indicator, window: Window) -> WindowReport:
    """Estimates of an indicator in one window; UnionNotAvailableError if it has no such union."""
    return indicator_reports(indicator, [window])[0]


def indicator_reports(indicator: Indicator, windows: Iterable[Window]) -> list[WindowReport]:
    """Estimates of an indicator in several windows; each tally is read once."""
    (loaded,) = load([indicator])
    return [_window_report(loaded, window) for window in windows]


def reports_with_tallies(
    indicators: Sequence[Indicator], windows: Sequence[Sequence[Window]], *, full: int | None = None
) -> list[tuple[list[WindowReport], IndicatorTallies]]:
    """Estimates of several indicators in their windows, and the tallies that they come from.

    Both are of the same publication, so that what is computed from the tallies fits the estimates.
    """
    found = loaded_reports(indicators, windows, full=full)
    return [(reports, tallies_of(loaded)) for reports, loaded in found]


def reports_with_strata(
    indicators: Sequence[Indicator], windows: Sequence[Sequence[Window]], *, full: int | None = None
) -> list[tuple[list[WindowReport], tuple[IndicatorTallies, ...]]]:
    """Estimates like those of `reports_with_tallies`, and the tallies of each class of people."""
    found = loaded_reports(indicators, windows, full=full)
    return [(reports, strata_of(loaded)) for reports, loaded in found]


def loaded_reports(
    indicators: Sequence[Indicator], windows: Sequence[Sequence[Window]], *, full: int | None = None
) -> list[tuple[list[WindowReport], Loaded]]:
    """Estimates as of `reports_with_tallies`, also in a study with classes, and what was read for them.

    After the first `full` windows, reports have estimates only where the small-category rule may hide some:
    thousands a day take long.
    """
    return [
        (
            [
                _window_report(loaded, window, is_bare=full is not None and place >= full)
                for place, window in enumerate(chosen)
            ],
            loaded,
        )
        for loaded, chosen in zip(load(indicators), windows, strict=True)
    ]


def study_reports(indicators: Sequence[Indicator], window: Window | None) -> list[WindowReport]:
    """Estimates of several indicators: in one window, or in all of them.

    Windows that an indicator does not have are left out.
    """
    return [
        _window_report(loaded, each)
        for loaded in load(indicators)
        for each in windows_of_indicator(loaded.indicator)
        if window in (None, each)
    ]


def disclosed_people(loaded: Loaded, window: Window) -> list[int]:
    """Exact numbers of people that answers disclose: of groups, or of categories not sensitive."""
    if isinstance(loaded.channel, SensitiveChannel):
        counts = union(loaded.codes, **window._asdict())
        return [int(n) for n in np.delete(counts, loaded.channel.sensitive)]
    if not isinstance(loaded.channel, RegionChannel):
        return []
    codes = union(loaded.codes, **window._asdict())
    return [int(each) for each in reports_of_regions(codes, channel=loaded.channel)]


def check_union(indicator: Indicator, window: Window) -> None:
    if window.days > 1 and not has_unions(indicator):
        text = gettext(
            "The date range for %(indicator)s must be a single day, because each person gives an answer on "
            "only %(n)d of %(days)d days. Requested: days %(first)d to %(last)d."
        )
        if indicator.max_moves is not None:
            text = gettext(
                "The date range for %(indicator)s must be a single day, because moves and visits are counted "
                "separately for each day. To add up several days, use the tables of flows or of visited "
                "zones. Requested: days %(first)d to %(last)d."
            )
        got = {"first": window.first_day, "last": window.last_day, "days": indicator.study.days}
        raise UnionNotAvailableError(text % {**got, "indicator": indicator.slug, "n": indicator.max_values})


def _window_report(loaded: Loaded, window: Window, *, is_bare: bool = False) -> WindowReport:
    indicator, study = loaded.indicator, loaded.indicator.study
    check_union(indicator, window)
    days = window._asdict()
    n_visitors = int(union(loaded.visitors, **days))
    n_reports = int(union(loaded.n_reports, **days))
    total = None if loaded.noise is None else loaded.noise.visitors.total(n_visitors, **days)
    # Of a class, or of what answers disclose, too: its figures would follow from those of all, whose channels
    # everyone knows.
    known = [own.n_visitors(window) for own in loaded.classes] + disclosed_people(loaded, window)
    status = window_status(
        n_visitors=min([n for n in (n_visitors, *known) if n], default=0),
        n_reports=n_reports if loaded.noise is None else int(total is not None),
        small_cell=study.small_cell,
        is_outage=loaded.outages.issuperset(range(window.first_day, window.last_day + 1)),
    )
    estimates = (
        ()
        if is_bare and not study.small_category
        else _estimates(loaded, window, n_reports=n_reports, n_visitors=n_visitors, status=status)
    )
    is_hidden = status == Status.SUPPRESSED
    return WindowReport(
        study=study,
        indicator=indicator,
        window=window,
        first_date=study.date_of(window.first_day),
        last_date=study.date_of(window.last_day),
        plan=loaded.plan,
        plan_version=loaded.plan.version,
        mechanism=loaded.plan.mechanism,
        epsilon=float(loaded.spec.epsilon),
        unit=loaded.plan.unit,
        is_unary=loaded.is_unary,
        has_fakes=loaded.has_fakes,
        n_visitors=None if is_hidden else n_visitors,
        n_reports=None if is_hidden else n_reports,
        estimates=estimates,
        status=_status_of(estimates, window=status),
        notes=tuple(note for note in loaded.notes if window.first_day <= note.day <= window.last_day),
        noisy_visitors=total,
        cuts=loaded.spec.scale,
    )


def _status_of(estimates: Sequence[Estimate], *, window: Status) -> Status:
    """Status of a report: all of its estimates have the same, unless they are hidden."""
    if window != Status.OK:
        return window
    return next((each.status for each in estimates if not each.is_hidden), Status.OK)


def _scale(study: Study, n_visitors: int) -> float:
    return n_visitors / float(study.market_share)


def _estimates(
    loaded: Loaded, window: Window, *, n_reports: int, n_visitors: int, status: Status
) -> tuple[Estimate, ...]:
    study, categories = loaded.indicator.study, loaded.indicator.categories
    french = loaded.indicator.categories_fr
    french = french or [None] * len(categories)
    if status == Status.SUPPRESSED:
        names = zip(categories, french, strict=True)
        return tuple(Estimate(category=a, reports=None, status=status, category_fr=b) for a, b in names)
    counts = union(loaded.counts, **window._asdict())
    found = _figures(loaded, window, counts, n_reports=n_reports, n_visitors=n_visitors)
    if found is None:
        # Neither counts that could be noise alone nor cuts without reports mean that nothing was collected.
        is_there = loaded.noise is not None or loaded.spec.scale is not None or bool(loaded.classes)
        status = Status.NOT_RELIABLE if is_there and status == Status.OK else status
        blanks = zip(categories, counts.tolist(), french, strict=True)
        return tuple(Estimate(category=a, reports=n, status=status, category_fr=b) for a, n, b in blanks)
    hidden = _hidden(loaded, window, found)
    if hidden is not None:
        found = found._replace(consistent=hidden.consistent.tolist())
    status = estimates_status(status, ci_low=found.ci_low, ci_high=found.ci_high)
    # By position, since a page may have thousands of these: Figures are in the order of an Estimate's fields.
    rows = zip(categories, counts.tolist(), *found, [status] * len(categories), french, strict=True)
    estimates = tuple(Estimate(*row) for row in rows)
    if hidden is None:
        return estimates
    return tuple(
        _shown_estimate(each, hidden.status(code), study=study) for code, each in enumerate(estimates)
    )


def _shown_estimate(estimate: Estimate, why_hidden: Status | None, *, study: Study) -> Estimate:
    if why_hidden is None:
        return estimate
    return Estimate(
        category=estimate.category,
        reports=None,
        status=why_hidden,
        category_fr=estimate.category_fr,
        below=below(study) if why_hidden == Status.SMALL else None,
    )


def _hidden(loaded: Loaded, window: Window, found: Figures) -> Hidden | None:
    """Apply the small-category rule; None in a study without it."""
    study = loaded.indicator.study
    if not study.small_category:
        return None
    parts = []
    for part in loaded.parts:
        # Of a number a combination has the sides of a cut, which are no categories.
        has_window = part.spec.scale is None and (window.days == 1 or has_unions(part.indicator))
        parts.append((part.spec.part_size + 1, _hidden_in(part, window) if has_window else None))
    least, visitors = study.small_category, all_unions(loaded.visitors)
    inside = windows_inside(window, visitors=visitors, least=least) if window.days > 1 else ()
    return hidden_categories(
        found.frequency,
        found.consistent,
        ci_low=found.ci_low,
        n_visitors=int(visitors[window.first_day, window.last_day]),
        least=least,
        parts=parts,
        inside=[each for each in (_hidden_in(loaded, part) for part in inside) if each is not None],
    )


def _hidden_in(loaded: Loaded, window: Window) -> Hidden | None:
    """Apply the rule to a window of which no report is asked for; each once."""
    if window not in loaded.hidden:
        days = window._asdict()
        found = _figures(
            loaded,
            window,
            union(loaded.counts, **days),
            n_reports=int(union(loaded.n_reports, **days)),
            n_visitors=int(union(loaded.visitors, **days)),
        )
        loaded.hidden[window] = None if found is None else _hidden(loaded, window, found)
    return loaded.hidden[window]


def _figures(
    loaded: Loaded, window: Window, counts: Counts, *, n_reports: int, n_visitors: int
) -> Figures | None:
    """Return the meaning of a window's counts, visitors scaled; None = nothing."""
    study = loaded.indicator.study
    if loaded.noise is not None:
        found = loaded.noise.figures(
            counts, n_visitors=n_visitors, channel=loaded.channel, **window._asdict()
        )
        return None if found is None else found.scaled(1 / float(study.market_share))
    if n_reports == 0:
        return None
    by_category = n_reports if loaded.spec.scale is None else union(loaded.by_category, **window._asdict())
    if np.min(by_category) == 0:
        return None
    # Which of a person's moves was reported is a draw, too: all reports are a sample.
    n_population = n_visitors if loaded.spec.moves is None else ENDLESS
    if loaded.classes:
        try:
            result = stratified([each.reports(window) for each in loaded.classes], level=LEVEL)
        except NoReportsError:  # a class of which no one reported: its shares are not known
            return None
    elif isinstance(loaded.channel, WaveChannel):
        codes = union(loaded.codes, **window._asdict())
        result = wave_survival(codes, channel=loaded.channel, n_population=n_population, level=LEVEL)
    elif isinstance(loaded.channel, RegionChannel):
        codes = union(loaded.codes, **window._asdict())
        result = region_frequencies(codes, channel=loaded.channel, n_population=n_population, level=LEVEL)
    else:
        result = pure_frequencies(
            counts, n_reports=by_category, n_population=n_population, channel=loaded.channel, level=LEVEL
        )
    shares = (result.frequency, result.std_error, result.ci_low, result.ci_high, result.consistent)
    if loaded.spec.moves is not None:  # shares of reports stand for moves, not for visitors
        return Figures(*(column.tolist() for column in shares), *[[None] * len(counts)] * 3)
    scale = _scale(study, n_visitors)
    of_visitors = (column * scale for column in (result.frequency, result.ci_low, result.ci_high))
    return Figures(*(column.tolist() for column in (*shares, *of_visitors)))
