"""Flows as files: a row for each pair and each total, and lines of the listed pairs."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from reports.accounts.access import study_or_404
from reports.base.attachments import attachment
from reports.crosstab.queries import Figure, NoCrosstabError
from reports.estimates.queries import WindowError, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404, refused
from reports.exports.findings.tables import Findings, Record, head_of, tail_of
from reports.exports.formats.choosing import FLOWS
from reports.exports.formats.columns import Kind
from reports.flows import texts
from reports.flows.pairs import place_pairs
from reports.flows.queries import Flows, NoFlowsError, flows_of
from reports.flows.query import flow_view
from reports.studies.texts import status_reason


@dataclass(frozen=True, kw_only=True)
class FlowFindings(Findings):
    """The table, with the flows that it is of."""

    flows: Flows


@file_of_study
def download_flows(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """Flows that the address names; GeoJSON has the listed pairs only."""
    study, found = study_or_404(request, slug), format_or_404(FLOWS, file_format)
    pairs = place_pairs(study)
    if not pairs:
        return refused(ExportError(no_pairs()))
    try:
        view = flow_view(request.GET, pairs, visitors=visitor_unions(study))
        findings = flow_findings(flows_of(view.pair, view.window))
    except (WindowError, NoCrosstabError) as error:
        return refused(error)
    except NoFlowsError as error:
        return refused(ExportError(status_reason(error.status, study)))
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


def no_pairs() -> str:
    """Say that a study has no flows."""
    return gettext("This study has no joint indicator of two places, so it has no flows.")


def flow_findings(flows: Flows) -> FlowFindings:
    """All figures; a row without an origin or a destination is a total."""
    report, pair = flows.reports[0], flows.pair
    head = head_of(report)
    last = flows.reports[-1].last_date.isoformat()
    n_reports = sum(day.n_reports for day in flows.days)
    return FlowFindings(
        name=f"{report.study.slug}_{pair.indicator.slug}_flows",
        title=gettext("Flows: %(name)s") % {"name": pair.indicator.shown_name},
        sheet="flows",
        reports=flows.reports,
        words=(texts.unit_words(flows), texts.error_words(flows), texts.missing_words(flows)),
        before=head
        | {"last_day": last, "n_visitors": flows.n_people, "n_reports": n_reports}
        | {
            "n_days": len(flows.days) if pair.is_daily else None,
            "origin_indicator": pair.origin.slug,
            "destination_indicator": pair.destination.slug,
        },
        rows=list(_rows(flows)),
        after=tail_of(report),
        kinds={"market_share": Kind.NUMBER, "n_days": Kind.COUNT},
        codes={
            "larger_than_noise": {
                "yes": gettext(
                    "at least one person has this pair; in 95 of 100 files, this is correct for all such rows"
                ),
                "no": gettext("cannot be distinguished from zero"),
            }
        },
        flows=flows,
    )


def _rows(flows: Flows) -> Iterator[Record]:
    origins, destinations = flows.pair.origin.file_names, flows.pair.destination.file_names
    for origin, cells, listed in zip(origins, flows.cells, flows.is_listed.tolist(), strict=True):
        for destination, figure, is_listed in zip(destinations, cells, listed, strict=True):
            yield flow_row(origin, destination, figure, is_listed=is_listed)
    for origin, figure in zip(origins, flows.outflow, strict=True):
        yield flow_row(origin, None, figure)
    for destination, figure in zip(destinations, flows.inflow, strict=True):
        yield flow_row(None, destination, figure)


def flow_row(
    origin: str | None, destination: str | None, figure: Figure, *, is_listed: bool | None = None
) -> Record:
    """One figure, with its numbers also where they are not reliable: the status says so."""
    return {
        "origin": origin,
        "destination": destination,
        "visitors": figure.visitors,
        "visitors_ci_low": figure.visitors_ci_low,
        "visitors_ci_high": figure.visitors_ci_high,
        "frequency": figure.share,
        "std_error": figure.std_error,
        "ci_low": figure.ci_low,
        "ci_high": figure.ci_high,
        "larger_than_noise": None if is_listed is None else "yes" if is_listed else "no",
        "status": str(figure.status),
    }
