"""Flows as files: a row for each pair and each total, and lines of the listed pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext

from reports.accounts.access import study_or_404
from reports.base.attachments import attachment
from reports.crosstab.queries import Figure, NoCrosstabError
from reports.estimates.options import Addressed
from reports.estimates.queries import WindowError
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404, refused
from reports.exports.findings.tables import Findings, Record, head_of, tail_of
from reports.exports.formats.choosing import FLOWS, Format
from reports.exports.formats.columns import Kind
from reports.flows import texts
from reports.flows.pairs import place_pairs
from reports.flows.queries import Flows, NoFlowsError, flows_of
from reports.flows.query import FlowView, flow_view
from reports.studies.models import Study
from reports.studies.texts import status_reason

_KINDS_OF_MOVES: Final = {
    **dict.fromkeys(("moves", "moves_ci_low", "moves_ci_high", "moves_balanced"), Kind.PEOPLE),
    **dict.fromkeys(("moves_per_visitor_day", "std_error", "ci_low", "ci_high"), Kind.NUMBER),
    "max_moves": Kind.COUNT,
}


Asked = Callable[[Study, QueryDict], tuple[Addressed, Callable[[], Findings]]]


@dataclass(frozen=True, kw_only=True)
class FlowFindings(Findings):
    """The table, with the flows that it is of."""

    flows: Flows


@file_of_study
def download_flows(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """Flows that the address names; GeoJSON has the listed pairs only."""
    return download(request, slug, format_or_404(FLOWS, file_format), asked=asked_flows)


def asked_flows(study: Study, query: QueryDict) -> tuple[FlowView, Callable[[], "FlowFindings"]]:
    """View of an address, and what computes it. ExportError if there are no flows, WindowError."""
    pairs = place_pairs(study)
    if not pairs:
        raise ExportError(
            gettext(
                "This study has no flows, because it has neither moves nor a joint indicator of two places."
            )
        )
    view = flow_view(query, pairs)
    return view, lambda: flow_findings(flows_of(view.pair, view.window))


def download(request: HttpRequest, slug: str, found: Format, *, asked: Asked) -> HttpResponse:
    """File of what the address asks for, or the reason why there is none."""
    study = study_or_404(request, slug)
    try:
        findings = asked(study, request.GET)[1]()
    except (ExportError, WindowError, NoCrosstabError) as error:
        return refused(error)
    except NoFlowsError as error:
        return refused(ExportError(status_reason(error.status, study)))
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


def flow_findings(flows: Flows) -> FlowFindings:
    """All figures; a row without an origin or a destination is a total."""
    report, pair = flows.reports[0], flows.pair
    return FlowFindings(
        name=f"{report.study.slug}_{pair.indicator.slug}_flows",
        title=gettext("Flows: %(name)s") % {"name": pair.indicator.shown_name},
        sheet="flows",
        reports=flows.reports,
        words=(texts.unit_words(flows), texts.error_words(flows), texts.missing_words(flows)),
        before=head_of(report)
        | {
            "last_day": flows.reports[-1].last_date.isoformat(),
            "n_visitors": flows.n_people,
            "n_reports": flows.n_reports,
            "n_days": len(flows.reports) if pair.is_daily else None,
        }
        | _source(flows),
        rows=list(_rows(flows)),
        after=tail_of(report),
        kinds={"market_share": Kind.NUMBER, "n_days": Kind.COUNT} | (_KINDS_OF_MOVES if pair.moves else {}),
        codes={
            "larger_than_noise": {
                "yes": gettext(
                    "at least one person has this pair of places; in at least 95 of 100 such files, every "
                    "row marked “yes” is correct"
                ),
                "no": gettext("cannot be distinguished from zero"),
            }
        },
        flows=flows,
    )


def _source(flows: Flows) -> Record:
    """Return what both ends come from."""
    if flows.pair.moves is not None:
        return {"max_moves": flows.pair.moves.per_day}
    origin, destination = flows.pair.parts
    return {"origin_indicator": origin.slug, "destination_indicator": destination.slug}


def _rows(flows: Flows) -> Iterator[Record]:
    n_rows, n_columns = flows.is_listed.shape
    for row in range(n_rows):
        for column in range(n_columns):
            if flows.is_possible(row, column):
                yield pair_row(flows, row, column)
    for row, figure in enumerate(flows.outflow):
        yield _row(flows, figure, origin=row)
    for column, figure in enumerate(flows.inflow):
        yield _row(flows, figure, destination=column)


def pair_row(flows: Flows, origin: int, destination: int) -> Record:
    """One pair, with its numbers also where they are not reliable: the status says so."""
    figure, is_listed = flows.cells[origin][destination], bool(flows.is_listed[origin, destination])
    return _row(flows, figure, origin=origin, destination=destination, is_listed=is_listed)


def _row(
    flows: Flows,
    figure: Figure,
    *,
    origin: int | None = None,
    destination: int | None = None,
    is_listed: bool | None = None,
) -> Record:
    """A pair, or a total of one end."""
    of_moves, pair = flows.pair.moves is not None, flows.pair
    amount, share = ("moves", "moves_per_visitor_day") if of_moves else ("visitors", "frequency")
    return {
        "origin": None if origin is None else pair.origin.file_names[origin],
        "destination": None if destination is None else pair.destination.file_names[destination],
        amount: figure.visitors,
        f"{amount}_ci_low": figure.visitors_ci_low,
        f"{amount}_ci_high": figure.visitors_ci_high,
        share: figure.share,
        "std_error": figure.std_error,
        "ci_low": figure.ci_low,
        "ci_high": figure.ci_high,
        **({} if of_moves else {"consistent": figure.consistent}),
        **({} if flows.balanced is None else {"moves_balanced": _balanced(flows, origin, destination)}),
        "larger_than_noise": None if is_listed is None else "yes" if is_listed else "no",
        "status": str(figure.status),
    }


def _balanced(flows: Flows, origin: int | None, destination: int | None) -> float | None:
    """Balanced moves of a pair; none of a total."""
    if flows.balanced is None or origin is None or destination is None:
        return None
    return float(flows.balanced[origin, destination])
