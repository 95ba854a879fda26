"""Mean of a number in each category of another indicator, from reports on both together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import union
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.means import expected_widths, means_by
from ldp.estimation.simulation import reporting_share
from ldp.privacy.joint import SIDES
from ldp.protocols.numbers.threshold import Scale
from reports.base.status import Status, estimates_status
from reports.estimates.queries import LEVEL, Window, WindowReport, reports_with_tallies
from reports.numbers.queries import Figure, NoNumberError
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan, has_unions

Floats = NDArray[np.float64]
_HIDDEN: Final = Figure(status=Status.SUPPRESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberBy:
    """An indicator that joins a number with another one.

    number, by : its parts; `is_number_first` is their order
    """

    indicator: Indicator
    number: Indicator
    by: Indicator
    scale: Scale
    is_number_first: bool

    @property
    def sides(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Codes of each category with numbers below the cut and above, shape (n_categories, 2)."""
        n = len(self.by.categories)
        shape = (SIDES + 1, n + 1) if self.is_number_first else (n + 1, SIDES + 1)
        codes = np.arange(np.prod(shape)).reshape(shape)
        return np.asarray((codes.T if self.is_number_first else codes)[:n, :SIDES], np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryMean:
    """Mean in a category, and the share of the visitors who are in it and have a number."""

    category: str
    shown_category: str
    mean: Figure
    share: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class MeansReport:
    """Means of one window, in the order of the categories; none where there are no figures."""

    joint: NumberBy
    report: WindowReport
    means: tuple[CategoryMean, ...]


def numbers_by(study: Study) -> list[NumberBy]:
    """Return the indicators of a study that join a number with another one, in plan order."""
    spec = current_plan(study).parsed
    places = [(index, place) for index in range(spec.d) if (place := spec.number_part(index)) is not None]
    if not places:
        return []
    of_slug = {each.slug: each for each in study.indicators.select_related("study")}
    found = []
    for index, place in places:
        asked, number = spec.indicators[index], spec.indicators[place]
        (other,) = (part for part in asked.parts if part != number.slug)
        if number.scale is not None:
            found.append(
                NumberBy(
                    indicator=of_slug[asked.slug],
                    number=of_slug[number.slug],
                    by=of_slug[other],
                    scale=number.scale,
                    is_number_first=asked.parts[0] == number.slug,
                )
            )
    return found


def number_by(indicator: Indicator) -> NumberBy | None:
    """Return the parts of an indicator that joins a number with another one; None of any other."""
    return next((each for each in numbers_by(indicator.study) if each.indicator.pk == indicator.pk), None)


def means_report(indicator: Indicator, window: Window) -> MeansReport:
    """Means in a window.

    Raises
    ------
    NoNumberError : the indicator joins no number with another one
    UnionNotAvailableError : a union of an indicator that people answer on some days only
    """
    joint = number_by(indicator)
    if joint is None:
        text = gettext(
            "%(name)s does not combine a number with another indicator, so no means can be calculated."
        )
        raise NoNumberError(text % {"name": indicator.shown_name})
    (((report,), tallies),) = reports_with_tallies([indicator], [[window]])
    if not report.n_reports or not report.n_visitors:
        return MeansReport(joint=joint, report=report, means=())
    reports = Reports.of_counts(
        union(tallies.counts, **window._asdict()),
        channel=tallies.channel,  # type: ignore[arg-type]
        n_reports=report.n_reports,
        n_population=report.n_visitors,
        level=LEVEL,
    )
    shares = _least_shares(joint, report)
    return MeansReport(joint=joint, report=report, means=_means(joint, report, reports, least_shares=shares))


def _least_shares(joint: NumberBy, report: WindowReport) -> Floats | None:
    """Lower bound of the share of visitors in each category with a number, by other people's answers.

    Of everyone in a category, no more can lack a number than lack one, or a category, in all. From the
    reports on both parts alone, so that which means are shown does not depend on the noise of the means. None
    where there are no such reports in the window.
    """
    parts = [joint.by, joint.number]
    if report.window.days > 1 and not all(has_unions(part) for part in parts):
        return None
    loaded = reports_with_tallies(parts, [[report.window]] * len(parts))
    lacking = 0.0  # share of visitors without a value of one part, at most
    for part, ((found,), _) in zip(parts, loaded, strict=True):
        if (
            not found.n_reports
            or not found.n_visitors
            or found.status not in (Status.OK, Status.NOT_RELIABLE)
        ):
            return None
        spec = found.plan.parsed
        asked = float(reporting_share(spec, spec.index(part.slug)))
        # Chance decides who is asked: only what lies beyond two of its standard errors is taken as lacking.
        by_chance = 2 * math.sqrt((1 - asked) / (found.n_visitors * asked))
        lacking += max(1 - found.n_reports / (found.n_visitors * asked) - by_chance, 0.0)
    ((categories,), _), _ = loaded
    return np.maximum(np.array([each.ci_low or 0.0 for each in categories.estimates]) - lacking, 0.0)


def _means(
    joint: NumberBy, report: WindowReport, reports: Reports, *, least_shares: Floats | None
) -> tuple[CategoryMean, ...]:
    # Shares of combinations say nothing about the means.
    window = Status.OK if report.status == Status.NOT_RELIABLE else report.status
    found = means_by(reports, codes=joint.sides, scale=joint.scale)
    answers = [reports.answer(codes) for codes in joint.sides]
    columns = {name: np.array([getattr(each, name) for each in answers]) for name in Shares.__slots__}
    of_category = Shares(**columns)
    least = of_category.ci_low if least_shares is None else least_shares
    widths = expected_widths(reports, shares=least).tolist()
    means = _figures(found, [estimates_status(window, ci_low=[0.0], ci_high=[width]) for width in widths])
    # As of every report, one status for all shares.
    ends = {"ci_low": of_category.ci_low.tolist(), "ci_high": of_category.ci_high.tolist()}
    shares = _figures(of_category, [estimates_status(window, **ends)] * len(answers))
    names = zip(joint.by.categories, joint.by.shown_categories, means, shares, strict=True)
    return tuple(
        CategoryMean(
            category=name,
            shown_category=shown,
            mean=_HIDDEN if is_hidden else mean,
            share=_HIDDEN if is_hidden else share,
        )
        for (name, shown, mean, share), is_hidden in zip(names, _hidden(joint, report), strict=True)
    )


def _hidden(joint: NumberBy, report: WindowReport) -> list[bool]:
    """Return whether the rule for small categories hides a part of what a mean is made of."""
    return [any(report.estimates[code].is_hidden for code in codes) for codes in joint.sides.tolist()]


def _figures(found: Shares, statuses: Sequence[Status]) -> list[Figure]:
    """Figures with a status each; without a value, which is nan, there is nothing reliable."""
    rows = zip(found.value, found.std_error, found.ci_low, found.ci_high, strict=True)
    figures = []
    for row, status in zip(rows, statuses, strict=True):
        value, std_error, low, high = (None if np.isnan(each) else float(each) for each in row)
        figures.append(
            Figure(
                status=Status.NOT_RELIABLE if value is None and status == Status.OK else status,
                value=value,
                std_error=std_error,
                ci_low=low,
                ci_high=high,
                is_exact=False,
            )
        )
    return figures
