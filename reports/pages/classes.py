"""Card of the classes on the page of an indicator."""

from typing import Any

from reports.base import formats
from reports.classes import texts
from reports.classes.queries import by_class
from reports.estimates.options import ReportOptions, ordered
from reports.estimates.queries import WindowReport


def classes_context(report: WindowReport, *, options: ReportOptions) -> dict[str, Any]:
    """Epsilon, visitors and shares of each class, in the order of the report; nothing without classes."""
    if not report.study.classes:
        return {}
    found = by_class(report.indicator, report.window)
    columns = [each.shares for each in found.rows] + ([found.alike] if found.alike else [])
    rows = {of[0].category: of for of in zip(*columns, strict=True)} if not found.is_hidden else {}
    names = [each.protection.shown_name for each in found.rows]
    order = [each.category for each in ordered(report, options=options) if each.category in rows]
    return {
        "by_class": found,
        "class_rows": [
            (
                each.protection.shown_name,
                formats.epsilon(each.epsilon),
                formats.epsilon(each.protection.certificate.epsilon_profile),
                formats.number(each.n_visitors),
                formats.number(each.n_reports),
                "" if each.half_width is None else formats.points(each.half_width),
            )
            for each in found.rows
        ],
        "class_names": names,
        "class_shares": [
            (
                rows[name][0].shown_category,
                [
                    (head, *texts.share_text(each))
                    for head, each in zip([*names, texts.alike_title()], rows[name], strict=False)
                ],
            )
            for name in order
        ],
        "class_weights": texts.weights_words(),
        "class_alike": texts.alike_words(found),
    }
