"""Visited zones as files: a row for each zone, or for each pair of zones."""

from collections.abc import Callable, Iterator
from typing import Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext

from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404
from reports.exports.findings.flows import download
from reports.exports.findings.tables import Findings, Record, head_of, tail_of
from reports.exports.formats.choosing import MOVEMENT
from reports.exports.formats.columns import Kind
from reports.flows import visited_texts as texts
from reports.flows.texts import missing_words
from reports.flows.visited import Visited, VisitedView, visited_items, visited_of, visited_view
from reports.studies.models import Study

_KINDS: Final = {"market_share": Kind.NUMBER, "n_days": Kind.COUNT, "max_visits": Kind.COUNT}


@file_of_study
def download_visited(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """Visits that the address names."""
    return download(request, slug, format_or_404(MOVEMENT, file_format), asked=asked_visits)


def asked_visits(study: Study, query: QueryDict) -> tuple[VisitedView, Callable[[], Findings]]:
    """View of an address, and what computes it. ExportError if there are no visited zones, WindowError."""
    items = visited_items(study)
    if not items:
        raise ExportError(gettext("This study has no indicator of visited zones."))
    view = visited_view(query, items)
    return view, lambda: visited_findings(visited_of(view.items, view.window))


def visited_findings(visited: Visited) -> Findings:
    """All figures, also of zones and pairs that are not larger than noise."""
    report, items = visited.reports[0], visited.items
    return Findings(
        name=f"{report.study.slug}_{items.indicator.slug}_visited",
        title=gettext("Visited zones: %(name)s") % {"name": items.indicator.shown_name},
        sheet="visited",
        reports=visited.reports,
        words=(texts.unit_words(visited), texts.error_words(), missing_words(visited)),
        before=head_of(report)
        | {
            "last_day": visited.reports[-1].last_date.isoformat(),
            "n_visitors": visited.n_people,
            "n_reports": visited.n_reports,
            "n_days": len(visited.reports),
            "max_visits": items.spec.per_day,
        },
        rows=list(_rows(visited)),
        after=tail_of(report),
        kinds=_KINDS,
        codes={
            "larger_than_noise": {
                "yes": gettext(
                    "at least one person made this visit; in at least 95 of 100 such files, every row "
                    "marked “yes” is correct"
                ),
                "no": gettext("cannot be distinguished from zero"),
            }
        },
    )


def _rows(visited: Visited) -> Iterator[Record]:
    """Yield each item with its numbers also where they are not reliable: the status says so."""
    rows = zip(visited.items.file_names, visited.figures, visited.is_listed.tolist(), strict=True)
    for names, figure, is_listed in rows:
        yield {
            "zone": names[0],
            "other_zone": names[1] if visited.items.in_pairs else None,
            "visitors": figure.visitors,
            "visitors_ci_low": figure.visitors_ci_low,
            "visitors_ci_high": figure.visitors_ci_high,
            "frequency": figure.share,
            "std_error": figure.std_error,
            "ci_low": figure.ci_low,
            "ci_high": figure.ci_high,
            "larger_than_noise": "yes" if is_listed else "no",
            "status": str(figure.status),
        }
