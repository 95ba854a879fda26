"""Cross-tabulations: a table of two parts of a joint indicator, and a question about its categories."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.base.status import Status
from reports.crosstab import texts
from reports.crosstab.association import verdict_of
from reports.crosstab.combined import NotCombinedError, combined, combining_refusal, projected
from reports.crosstab.joints import Joint, selectable_indicators
from reports.crosstab.model import has_models
from reports.crosstab.queries import Measured, NoCrosstabError, Table, measure, table_of
from reports.crosstab.query import (
    COLUMNS,
    COMBINED,
    GROUP,
    INDICATOR,
    LEAST,
    MOST,
    NO_VALUE,
    ONLY,
    ROWS,
    SHARES,
    WITHIN,
    View,
    view_of,
)
from reports.estimates.page import weekdays, window_page
from reports.estimates.picker import kept_days
from reports.estimates.queries import Counts, WindowError, visitor_unions
from reports.estimates.texts import values_switch
from reports.flows.pairs import place_pairs
from reports.privacy.statement.document import protection_of
from reports.studies.texts import crumbs_to, status_reason


@require_safe
@readers_only
def crosstab(request: HttpRequest, slug: str) -> HttpResponse:
    """Table and answer of the view in the address; an address that is none has the default."""
    study = study_or_404(request, slug)
    asked = selectable_indicators(study)
    joints = [each for each in asked if not each.is_single]
    context: dict[str, Any] = {
        "study": study,
        "crumbs": crumbs_to(study, kept_days(request.GET, study)),
        "joints": joints,
    }
    if not asked or not (joints or request.GET.get(INDICATOR)):
        return render(request, "crosstab/crosstab.html", context | {"state": "no_joint"})
    visitors, status = visitor_unions(study), 200
    try:
        view = view_of(request.GET, asked, visitors=visitors)
    except WindowError as error:
        # Of the same indicator, if there is one of this name.
        named = [each for each in asked if each.indicator.slug == request.GET.get(INDICATOR)]
        view, status = view_of(QueryDict(), named or asked, visitors=visitors), 400
        context["problem"] = str(error)
    context |= _view_context(view, visitors=visitors) | {"has_models": has_models(study)}
    try:
        context |= figures_context(measure(view.joint, view.window), view)
    except NoCrosstabError as error:
        context |= {"state": "refused", "refusal": str(error)}
    return render(request, "crosstab/crosstab.html", context, status=status)


def _view_context(view: View, *, visitors: Counts) -> dict[str, Any]:
    """Forms and links of a view."""
    window = window_page(view.joint.indicator, view.window, visitors=visitors, options=view)
    return window | {
        "view": view,
        "joint": view.joint,
        "is_joint": not view.joint.is_single,
        "is_flow": any(
            pair.indicator == view.joint.indicator for pair in place_pairs(view.joint.indicator.study)
        ),
        "weekdays": weekdays(),
        "bases": texts.base_titles(),
        "has_third": view.third is not None,
        "kept": _kept(view),
        "within_links": within_links(view),
        "choices": _choices(view),
        "full_query": view.query(),
        "unasked": view.query(**dict.fromkeys(_asked(view.joint), "")),
        "turned": view.query(**{ROWS: view.column_part.slug, COLUMNS: view.row_part.slug}),
    }


def _kept(view: View) -> dict[str, dict[str, str]]:
    """Hidden fields of both forms: what each leaves as it is."""
    of_question = _asked(view.joint)
    of_table = {ROWS, COLUMNS, SHARES, WITHIN}
    return {
        "table": {name: text for name, text in view.chosen.items() if name not in of_table},
        "question": {name: text for name, text in view.chosen.items() if name not in of_question},
    }


def _asked(joint: Joint) -> list[str]:
    """Parameters of a question."""
    return [ONLY + part.slug for part in joint.parts]


def within_links(view: View) -> list[tuple[str, str, bool]]:
    """Ways to the tables of each category of the third part, and to that of all."""
    if view.third_part is None:
        return []
    names = enumerate(view.third_part.names)
    return [
        (gettext("All"), view.query(**{WITHIN: ""}), view.within is None),
        *((name, view.query(**{WITHIN: str(code)}), view.within == code) for code, name in names),
    ]


def _choices(view: View) -> list[dict[str, Any]]:
    """Categories of each part, as boxes to tick."""
    return [
        {
            "name": ONLY + part.slug,
            "groups": (GROUP + part.slug, [name for name, _ in part.groups]),
            "range": (LEAST + part.slug, MOST + part.slug) if part.n_ordered else None,
            "ordered": list(enumerate(part.names))[: part.n_ordered],
            "title": part.name,
            "n_chosen": len(view.choice.get(place, ())),
            "boxes": [
                (code, name, code in view.choice.get(place, ())) for code, name in enumerate(part.names)
            ],
        }
        for place, part in enumerate(view.joint.parts)
    ]


def figures_context(measured: Measured, view: View) -> dict[str, Any]:
    """Table, answer and test of a view, or why there are none."""
    report = measured.report
    context: dict[str, Any] = {
        "report": report,
        "status": report.status,
        "is_scaled": report.study.market_share != 1,
    }
    if measured.reports is None:
        return context | {"state": "blank", "reason": status_reason(report.status, report.study)}
    figure = measured.answer(view.choice)
    context |= {
        "state": "figures",
        "figure": figure,
        "sentence": texts.sentence(measured, figure, view.choice, values=view.values),
        "switches": [values_switch(view)],
        "protection": protection_of(report.plan, report.indicator.slug),
    }
    if view.joint.is_single:
        return context
    from_all, refusal = None, combining_refusal(measured, view)
    not_combined = refusal
    try:
        from_all = combined(measured, view) if view.combined else None
    except NotCombinedError as error:
        not_combined = str(error)
    table = table_of(measured, view, found=None if from_all is None else projected(from_all))
    return (
        context
        | {
            "verdict": verdict_of(measured, view),
            "is_combined": from_all is not None,
            # Combined shares are consistent in any case.
            "switches": [values_switch(view)] if from_all is None else [],
            "combine": view.query(**{COMBINED: "1"}) if not refusal else "",
            "not_combined": not_combined,
            "uncombine": view.query(**{COMBINED: ""}),
        }
        | (_table(table.shown(view.values)) if table else {"is_too_large": True})
    )


def _table(table: Table) -> dict[str, Any]:
    """The table as rows of cells, with heads and legend."""
    view, scale = table.view, texts.Scale.of(table)
    row_names, column_names = view.row_part.names, view.column_part.names
    return {
        "table": table,
        "table_title": texts.table_title(view),
        "column_names": [column_names[code] for code in table.shown_columns],
        "rows": [
            (
                row_names[code],
                _joined(texts.cell(table.cells[code][column], scale=scale) for column in table.shown_columns),
                texts.cell(table.rows[code]),
            )
            for code in table.shown_rows
        ],
        "totals": _joined(texts.cell(table.columns[column]) for column in table.shown_columns),
        "whole": texts.cell(table.whole),
        "legend": scale.legend,
        "has_unreliable": any(
            each.status == Status.NOT_RELIABLE
            for row in (*table.cells, table.rows, table.columns)
            for each in row
        ),
        "hidden_words": texts.hidden_words(table),
        "show_no_value": view.query(**{NO_VALUE: "1"}),
        "hide_no_value": view.query(**{NO_VALUE: ""}),
    }


def _joined(cells: Any) -> SafeString:
    return SafeString("".join(cells))
