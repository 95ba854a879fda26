"""Flows: people by pairs of places, as a list, a map, a table, totals, and the catchment of a zone."""

from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.base import formats
from reports.base.status import Status
from reports.crosstab.queries import Figure, NoCrosstabError
from reports.estimates.page import weekdays, window_page
from reports.estimates.picker import kept_days
from reports.estimates.queries import WindowError, visitor_unions
from reports.estimates.texts import values_switch
from reports.flows import texts
from reports.flows.pairs import place_pairs
from reports.flows.queries import LARGEST, Flows, NoFlowsError, fits_a_page, flows_of
from reports.flows.query import ZONE, FlowView, flow_view
from reports.maps.flow_arcs import flow_map
from reports.maps.shapes import area_shapes
from reports.privacy.statement.document import protection_of
from reports.studies.models import Area
from reports.studies.texts import crumbs_to, status_reason


@require_safe
@readers_only
def flows(request: HttpRequest, slug: str) -> HttpResponse:
    """Flows of the view in the address; an address that is none has the default."""
    study = study_or_404(request, slug)
    pairs = place_pairs(study)
    context: dict[str, Any] = {
        "study": study,
        "crumbs": crumbs_to(study, kept_days(request.GET, study)),
        "pairs": pairs,
    }
    if not pairs:
        return render(request, "flows/flows.html", context | {"state": "no_pair"})
    status = 200
    try:
        view = flow_view(request.GET, pairs)
    except WindowError as error:
        view, status = flow_view(QueryDict(), pairs), 400
        context["problem"] = str(error)
    window = window_page(view.pair.indicator, view.window, visitors=visitor_unions(study), options=view)
    context |= window | {"view": view, "pair": view.pair, "weekdays": weekdays()}
    context |= {"zone_name": ZONE, "zones": list(enumerate(view.pair.destination.names[:-1]))}
    context["of_moves"] = view.pair.moves is not None
    try:
        context |= _figures(flows_of(view.pair, view.window), view)
    except NoFlowsError as error:
        reason = status_reason(error.status, study)
        context |= {"state": "blank", "status": error.status, "reason": reason}
    except NoCrosstabError as error:
        context |= {"state": "refused", "refusal": str(error)}
    return render(request, "flows/flows.html", context, status=status)


def _figures(found: Flows, view: FlowView) -> dict[str, Any]:
    pair, of_moves, found = found.pair, found.pair.moves is not None, found.shown(view.values)
    return {
        "state": "figures",
        "switches": [] if of_moves else [values_switch(view)],
        "values": "unbiased" if of_moves else view.values,
        "people_title": texts.people_title(found),
        "share_title": texts.share_title(found),
        "table_title": texts.table_title(found),
        "flows": found,
        "report": found.reports[0],
        "protection": protection_of(found.reports[0].plan, pair.indicator.slug),
        "is_scaled": pair.indicator.study.market_share != 1,
        "unit_words": texts.unit_words(found),
        "error_words": texts.error_words(found),
        "missing_words": texts.missing_words(found),
        "list_words": texts.list_words(found),
        "moving_words": texts.moving_words(found),
        "largest": [
            (
                *texts.flow_names(found, flow),
                texts.people_cell(flow.figure),
                texts.share_cell(flow.figure, of_moves=of_moves),
            )
            for flow in found.listed[:LARGEST]
        ],
        "has_totals": any(each.status != Status.NOT_RELIABLE for each in (*found.outflow, *found.inflow)),
        "totals": [
            (pair.origin.name, _totals(pair.origin.names, found.outflow, of_moves=of_moves)),
            (pair.destination.name, _totals(pair.destination.names, found.inflow, of_moves=of_moves)),
        ],
        **_matrix(found),
        **_catchment(found, view),
        **_map(found),
    }


def _totals(
    names: list[str], figures: list[Figure], *, of_moves: bool
) -> list[tuple[str, SafeString, SafeString]]:
    rows = zip(names, figures, strict=True)
    return [(name, texts.people_cell(each), texts.share_cell(each, of_moves=of_moves)) for name, each in rows]


def _matrix(found: Flows) -> dict[str, Any]:
    if not fits_a_page(found):
        return {"is_too_large": True}
    origins, destinations = found.pair.origin.names, found.pair.destination.names
    is_listed = found.is_listed.tolist()

    def cells(row: int) -> SafeString:
        made = texts.people_cells(found.cells[row], is_listed=is_listed[row])
        if not found.is_possible(row, row):
            made[row] = texts.no_cell()
        return SafeString("".join(made))

    return {
        "column_names": destinations,
        "rows": [(name, cells(row)) for row, name in enumerate(origins)],
        "balanced": _balanced(found, origins),
    }


def _balanced(found: Flows, origins: list[str]) -> list[tuple[str, SafeString]]:
    """Cells of balanced moves from each place to all others, and of their sum, as whole numbers."""
    if found.balanced is None:
        return []
    moves = found.balanced * ~np.eye(len(origins), dtype=np.bool_)
    rows = []
    for row, (name, cells) in enumerate(zip(origins, moves.tolist(), strict=True)):
        numbers = formats.numbers([*cells, sum(cells)])
        numbers[row] = formats.MISSING
        rows.append((name, SafeString("".join(f'<td class="number">{each}</td>' for each in numbers))))
    return rows


def _catchment(found: Flows, view: FlowView) -> dict[str, Any]:
    """Origins of the people at the chosen destination."""
    if view.zone is None:
        return {}
    rows = found.catchment(view.zone)
    return {
        "catchment_zone": found.pair.destination.names[view.zone],
        "has_shares": rows[0][1] is not None,
        "catchment": [
            (
                texts.flow_names(found, flow)[0],
                texts.people_cell(
                    flow.figure, is_listed=bool(found.is_listed[flow.origin, flow.destination])
                ),
                texts.share_cell(None if within is None else within.shown(view.values)),
            )
            for flow, within in rows
        ],
    }


def _map(found: Flows) -> dict[str, Any]:
    """The map with its arcs; nothing where pairs are not two zones with shapes."""
    area = Area.objects.filter(study=found.pair.indicator.study).exclude(outlines=[]).first()
    if area is None or not found.pair.has_zones_at_both_ends:
        return {}
    shapes = area_shapes(area)
    document, n_arcs = flow_map(found, shapes)
    return {
        "map_document": document,
        "map_day": 0,
        "n_arcs": n_arcs,
        "layers": shapes.layers,
        "map_summary": gettext("Map with an arrow for each pair of different zones in the list."),
    }
