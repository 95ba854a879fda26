"""Three-way tables by maximum entropy, marked as a model."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.crosstab import texts
from reports.crosstab.model import ModelTable, ModelView, model_table, model_view, triples
from reports.crosstab.queries import NoCrosstabError
from reports.estimates.page import window_page
from reports.estimates.picker import kept_days
from reports.estimates.queries import Counts, WindowError, visitor_unions
from reports.privacy.statement.document import protection_of
from reports.studies.texts import crumbs_to, status_reason


@require_safe
@readers_only
def crosstab_model(request: HttpRequest, slug: str) -> HttpResponse:
    """Table of the view in the address; an address that is none has the default."""
    study = study_or_404(request, slug)
    found, visitors, status = triples(study), visitor_unions(study), 200
    context: dict[str, Any] = {"study": study, "crumbs": crumbs_to(study, kept_days(request.GET, study))}
    if not found:
        return render(request, "crosstab/model.html", context | {"state": "none"})
    try:
        view = model_view(request.GET, found, visitors=visitors)
    except WindowError as error:
        view, status = model_view(QueryDict(), found, visitors=visitors), 400
        context["problem"] = str(error)
    context |= _view_context(view, visitors=visitors) | {"triples": found}
    try:
        context |= _table_context(model_table(view))
    except NoCrosstabError as error:
        context |= {"state": "refused", "refusal": str(error)}
    return render(request, "crosstab/model.html", context, status=status)


def _view_context(view: ModelView, *, visitors: Counts) -> dict[str, Any]:
    page = window_page(view.triple.windows_of, view.window, visitors=visitors, options=view)
    rows, columns, third = view.triple.parts
    orders = [(rows, columns, third), (rows, third, columns), (third, columns, rows)]
    return page | {
        "view": view,
        "row_part": rows,
        "column_part": columns,
        "third_part": third,
        "orders": [
            (
                gettext("%(rows)s by %(columns)s within %(third)s")
                % {"rows": a.name, "columns": b.name, "third": c.name},
                view.query(rows=a.slug, columns=b.slug, third=c.slug, within="0"),
            )
            for a, b, c in orders[1:]
        ],
        "within_links": [
            (name, view.query(within=str(code)), code == view.within) for code, name in enumerate(third.names)
        ],
        "pair_names": [joint.indicator.shown_name for joint in view.triple.joints],
    }


def _table_context(table: ModelTable) -> dict[str, Any]:
    view, report = table.view, table.report
    if table.cells is None:
        return {"state": "blank", "status": report.status, "reason": status_reason(report.status, view.study)}
    rows, columns, _ = view.triple.parts
    shown = zip(rows.names, table.cells, strict=True)
    return {
        "state": "figures",
        "report": report,
        "pair_facts": [(each, protection_of(each.plan, each.indicator.slug)) for each in table.pairs],
        "column_names": columns.names,
        "rows": [
            (name, SafeString("".join(texts.cell(cell[view.within]) for cell in cells)))
            for name, cells in shown
        ],
    }
