"""Texts of deconvolved maps: progress of a worker, goodness of fit, and the better view."""

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext

from reports.base import formats
from reports.estimates.queries import WindowReport
from reports.maps.density import ZoneRow, half_width_of_report, half_width_of_rows
from reports.maps.models import DensityMap

LEAST_BLOCKS: Final = 5  # of enough reports each: of fewer, a density that is wrong explains the sums, too


def goodness_words(kept: DensityMap) -> str:
    """Return whether the density explains the reports."""
    figures = kept.figures
    found = {
        "chi": formats.decimal(figures["chi_square"], decimals=2),
        "low": formats.decimal(figures["chi_square_low"], decimals=2),
        "high": formats.decimal(figures["chi_square_high"], decimals=2),
        "steps": figures["steps"],
        "n": formats.number(figures["n_blocks"]),
    }
    if figures["n_blocks"] < LEAST_BLOCKS:
        text = gettext(
            "There are too few reports, or too many of them in one place, to test how well the estimated "
            "density fits the reports."
        )
    elif figures["chi_square"] <= figures["chi_square_high"]:
        text = gettext(
            "The density fits the reports as well as the noise allows. Chi-square per block is "
            "%(chi)s, based on %(n)s blocks. For a correct density, it is between %(low)s and "
            "%(high)s in 95 of 100 cases."
        )
    else:
        text = gettext(
            "The density does not fit the reports. Chi-square per block is %(chi)s, based on %(n)s "
            "blocks. For a correct density, it would be between %(low)s and %(high)s. People may "
            "have been in places that the study does not count as land."
        )
    stop = gettext(
        "The calculation stopped after %(steps)d steps. At this point, the density best predicted the "
        "reports that had been set aside as a check."
    )
    return f"{text} {stop}" % found


def better_view_words(
    rows: Sequence[ZoneRow], reports: Sequence[WindowReport], *, zones: Sequence[str]
) -> str:
    """Name the more exact of two views of zones, and why; empty where there is nothing to compare.

    The rows are those by reported places, the reports those of indicators whose categories are zones, in the
    same window.
    """
    by_places = half_width_of_rows(rows)
    widths = [(half_width_of_report(report, zones=zones), report) for report in reports]
    known = [(width, report) for width, report in widths if width is not None]
    if by_places is None:
        return ""
    if not known:
        return gettext(
            "Counts by zone based on reported places are accurate to about ±%(places)s subscribers on "
            "average. No indicator by zone has figures for these days, so a comparison is not possible."
        ) % {"places": formats.number(by_places)}
    width, report = min(known, key=lambda pair: pair[0])
    facts = {
        "name": report.indicator.shown_name,
        "places": formats.number(by_places),
        "zones": formats.number(width),
        "n": formats.number(report.n_reports),
    }
    return _better(is_places=by_places <= width) % facts


def _better(*, is_places: bool) -> str:
    if is_places:
        text = gettext(
            "For zones of this size, reported places are more accurate: ±%(places)s subscribers on "
            "average, compared with ±%(zones)s for “%(name)s”. Everyone reports a place, but “%(name)s” "
            "has only %(n)s answers."
        )
    else:
        text = gettext(
            "For zones of this size, the indicator “%(name)s” is more accurate: ±%(zones)s subscribers "
            "on average, compared with ±%(places)s for reported places. Noise can move a reported place "
            "across a zone border."
        )
    also = gettext(
        "The map and the indicator may measure different things, such as where people are by day and "
        "where they are by night. Only the map shows detail within zones."
    )
    return f"{text} {also}"


def stage_words(kept: DensityMap) -> str:
    """Describe a worker's progress."""
    if kept.state == DensityMap.State.WAITING:
        return gettext("Waiting for a worker.")
    stages = (
        gettext("Estimating the density that best fits the reports."),
        gettext("Resampling the reports to estimate the uncertainty of the density."),
        gettext("Testing how well the density fits the reports."),
        gettext("Counting by zone."),
    )
    return stages[min(kept.stage, len(stages) - 1)]
