"""Test of association of the two parts of a table: what it says and does not say."""

from dataclasses import dataclass

from django.utils.translation import gettext

from ldp.estimation.joint.association import (
    MAX_TESTED_CELLS,
    Association,
    Margin,
    independence_test,
    margin_of,
)
from ldp.estimation.simulation import reporting_share
from reports.base import formats
from reports.crosstab.joints import Part
from reports.crosstab.queries import Measured, layout_of, reports_of
from reports.crosstab.query import View
from reports.estimates.queries import LEVEL, has_small, reports_with_tallies


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of the test in words; `found` is None where there is none, and `sentence` says why."""

    found: Association | None
    sentence: str
    limits: str = ""

    @property
    def is_together(self) -> bool | None:
        """Return whether the test rejects independence at 5%."""
        return None if self.found is None else self.found.p_value < 1 - LEVEL


def verdict_of(measured: Measured, view: View) -> Verdict:
    """Test whether rows and columns of a table go together."""
    names = {"rows": view.row_part.name, "columns": view.column_part.name}
    refusal = _refusal(measured, view)
    if refusal:
        return Verdict(found=None, sentence=refusal % names)
    margins = _margins(measured, (view.row_part, view.column_part))
    if measured.reports is None or margins is None:
        text = gettext(
            "This test is possible only if, on these days, some people answered only the question on "
            "%(rows)s and others answered only the question on %(columns)s."
        )
        return Verdict(found=None, sentence=text % names)
    rows, columns = margins
    layout = layout_of(view)[: view.row_part.no_value, : view.column_part.no_value]
    found = independence_test(measured.reports, layout=layout, rows=rows, columns=columns)
    values = names | {"p": formats.p_value(found.p_value)}
    if found.p_value < 1 - LEVEL:
        return Verdict(
            found=found,
            sentence=gettext("%(rows)s and %(columns)s are associated (p %(p)s).") % values,
            limits=gettext("The test does not show which categories are associated, how strongly, or why."),
        )
    return Verdict(
        found=found,
        sentence=gettext("No association between %(rows)s and %(columns)s was detected (p %(p)s).") % values,
        limits=gettext(
            "This result does not show that the two indicators are independent, because noise can hide a "
            "weak association."
        ),
    )


def _refusal(measured: Measured, view: View) -> str:
    """Why there is no test, with places for the names of both parts; "" if there is one."""
    if view.within is not None:
        return gettext(
            "The test for %(rows)s and %(columns)s is not available for groups of visitors. To see the "
            "test for all visitors together, choose “All” above."
        )
    if measured.joint.indicator.kind != "static" and view.window.days > 1:
        return gettext(
            "Choose a single day for the test, because the value of %(rows)s or %(columns)s can change "
            "from day to day."
        )
    if view.row_part.no_value * view.column_part.no_value > MAX_TESTED_CELLS:
        return gettext("%(rows)s and %(columns)s have too many categories for the test.")
    if has_small([measured.report]):
        return gettext(
            "The test for %(rows)s and %(columns)s is not available because this study hides small "
            "categories."
        )
    return ""


def _margins(measured: Measured, parts: tuple[Part, Part]) -> tuple[Margin, Margin] | None:
    """Answers to each part alone, given by other people; None if there are none."""
    window = measured.report.window
    found = []
    loaded = reports_with_tallies([part.indicator for part in parts], [[window], [window]])
    for part, ((report,), tallies) in zip(parts, loaded, strict=True):
        reports = reports_of(report, tallies)
        if reports is None:
            return None
        spec = report.plan.parsed
        found.append(margin_of(reports, asked=float(reporting_share(spec, spec.index(part.slug)))))
    return found[0], found[1]
