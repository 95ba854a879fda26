"""Mean of a number in each category of another indicator, from reports on both together."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.translation import gettext

from ldp import PlanSpec, union
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.means import means_by
from ldp.privacy.joint import SIDES
from ldp.protocols.numbers.threshold import Scale
from reports.base.status import Status, estimates_status
from reports.estimates.queries import LEVEL, Window, WindowReport, reports_with_tallies
from reports.numbers.queries import Figure, NoNumberError
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan

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
    spec = PlanSpec.from_json(current_plan(study).spec)
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
    return MeansReport(joint=joint, report=report, means=_means(joint, report, reports))


def _means(joint: NumberBy, report: WindowReport, reports: Reports) -> tuple[CategoryMean, ...]:
    # Shares of combinations say nothing about the means.
    window = Status.OK if report.status == Status.NOT_RELIABLE else report.status
    found = means_by(reports, codes=joint.sides, scale=joint.scale)
    reach = joint.scale.cuts[-1] - joint.scale.minimum
    means = _figures(found, window=window, reach=reach)
    answers = [reports.answer(codes) for codes in joint.sides]
    columns = {name: np.array([getattr(each, name) for each in answers]) for name in Shares.__slots__}
    shares = _figures(Shares(**columns), window=window, reach=1)
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


def _figures(found: Shares, *, window: Status, reach: float) -> list[Figure]:
    """Give each a status, since the mean of a category with few people may be of no use."""
    rows = zip(found.value, found.std_error, found.ci_low, found.ci_high, strict=True)
    figures = []
    for row in rows:
        value, std_error, low, high = (None if np.isnan(each) else float(each) for each in row)
        width = 1.0 if low is None or high is None or value is None else (high - low) / reach
        figures.append(
            Figure(
                status=estimates_status(window, ci_low=[0.0], ci_high=[width]),
                value=value,
                std_error=std_error,
                ci_low=low,
                ci_high=high,
                is_exact=False,
            )
        )
    return figures
