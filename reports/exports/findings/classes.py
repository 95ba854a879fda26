"""Figures by class as a file: shares of each class, then those that assume the same shares in all of them."""

from collections.abc import Iterator, Sequence

from django.http import HttpRequest, HttpResponse

from reports.classes import texts
from reports.classes.queries import ByClass, ClassRow, NoClassesError, Share, by_class
from reports.estimates.queries import Window
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study
from reports.exports.findings.of_window import window_file
from reports.exports.findings.tables import Findings, Record, head_of
from reports.exports.formats.columns import Kind
from reports.exports.records import CONTEXT_NAMES, report_record
from reports.studies.models import Indicator


@file_of_study
def download_classes(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """Figures by class of the window that the page shows."""
    return window_file(
        request, slug, indicator_slug, file_format, make=class_findings, refusal=NoClassesError
    )


def class_findings(indicator: Indicator, window: Window) -> Findings:
    """Rows of a window; ExportError where the small-cell rule hides them."""
    found = by_class(indicator, window)
    if found.is_hidden:
        raise ExportError(texts.alike_words(found))
    record = report_record(found.report)
    shares = ("frequency", "std_error", "ci_low", "ci_high")
    return Findings(
        name=f"{indicator.study.slug}_{indicator.slug}_classes",
        title=indicator.shown_name,
        sheet="classes",
        reports=(found.report,),
        words=(texts.weights_words(), texts.alike_words(found)),
        before={},
        rows=class_rows(found),
        after={name: record[name] for name in CONTEXT_NAMES},
        kinds=dict.fromkeys(("class_visitors", "class_reports"), Kind.COUNT)
        | dict.fromkeys(shares, Kind.SHARE)
        | {"class_epsilon": Kind.NUMBER},
        codes={},
    )


def class_rows(found: ByClass) -> list[Record]:
    """A row for each class and category; without a class: of all, assuming the same shares."""
    rows = [row for each in found.rows for row in _rows(found, each, each.shares)]
    return [*rows, *_rows(found, None, found.alike)]


def _rows(found: ByClass, own: ClassRow | None, shares: Sequence[Share]) -> Iterator[Record]:
    for each in shares:
        yield head_of(found.report) | {
            "class": None if own is None else own.protection.slug,
            "class_epsilon": None if own is None else float(own.protection.nominal),
            "class_visitors": None if own is None else own.n_visitors,
            "class_reports": None if own is None else own.n_reports,
            "category": each.category,
            "frequency": each.frequency,
            "std_error": each.std_error,
            "ci_low": each.ci_low,
            "ci_high": each.ci_high,
            "status": str(each.status),
        }
