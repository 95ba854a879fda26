"""Total of the population as a file: rows of the window and of each of its days, with the market shares."""

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse

from reports.estimates.queries import Window
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study
from reports.exports.findings.of_window import window_file
from reports.exports.findings.tables import Findings, Record, head_of
from reports.exports.formats.columns import Kind
from reports.exports.records import CONTEXT_NAMES, report_record
from reports.extrapolation.queries import Extrapolation, NoSharesError, People, extrapolations
from reports.extrapolation.texts import method_words, total_sentence
from reports.studies.models import Indicator

_SHARES = ("category_share", "category_share_low", "category_share_high")
_PEOPLE = ("not_scaled", "scaled")


@file_of_study
def download_extrapolation(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponse:
    """Total of the window that the page shows, and of its days."""
    return window_file(
        request, slug, indicator_slug, file_format, make=extrapolation_findings, refusal=NoSharesError
    )


def extrapolation_findings(indicator: Indicator, window: Window) -> Findings:
    """Rows of the window, then of its days; ExportError where no shares are valid on any of them."""
    whole, days = extrapolations(indicator, window)
    rows = extrapolation_rows([whole, *days])
    if not rows:
        raise ExportError(total_sentence(whole))
    record = report_record(whole.report)
    columns = [f"{name}{end}" for name in _PEOPLE for end in ("", "_std_error", "_ci_low", "_ci_high")]
    dates = ("shares_valid_from", "shares_valid_to")
    return Findings(
        name=f"{indicator.study.slug}_{indicator.slug}_extrapolation",
        title=indicator.shown_name,
        sheet="extrapolation",
        reports=(whole.report,),
        words=(total_sentence(whole), method_words(whole)),
        before={},
        rows=rows,
        after={name: record[name] for name in CONTEXT_NAMES},
        kinds=dict.fromkeys(columns, Kind.PEOPLE)
        | dict.fromkeys(_SHARES, Kind.NUMBER)
        | dict.fromkeys(dates, Kind.DAY),
        codes={},
    )


def extrapolation_rows(found: list[Extrapolation]) -> list[Record]:
    """A row for each total, which has no category, and one for each category; none of days without shares."""
    return [row for each in found for row in _rows(each)]


def _rows(found: Extrapolation) -> Iterator[Record]:
    report, shares = found.report, found.shares
    if shares is None:
        return
    head = head_of(report) | {
        "shares_name": shares.name,
        "shares_valid_from": shares.valid_from.isoformat(),
        "shares_valid_to": None if shares.valid_to is None else shares.valid_to.isoformat(),
    }
    counted = People(status=report.status, value=report.n_visitors)
    yield head | _row(None, (None, None, None), counted, found.total)
    for each in found.rows:
        numbers = (each.share.share, each.share.low, each.share.high)
        values = tuple(None if number is None else float(number) for number in numbers)
        yield head | _row(each.category, values, each.seen, each.people)


def _row(category: str | None, shares: tuple[float | None, ...], seen: People, people: People) -> Record:
    row: Record = {"category": category, **dict(zip(_SHARES, shares, strict=True))}
    for name, of in zip(_PEOPLE, (seen, people), strict=True):
        row |= {
            name: of.value,
            f"{name}_std_error": of.std_error,
            f"{name}_ci_low": of.ci_low,
            f"{name}_ci_high": of.ci_high,
        }
    return row | {"status": str(people.status)}
