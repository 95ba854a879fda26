"""Three-way tables by maximum entropy as a file: a row for each combination, marked as a model."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from reports.accounts.access import study_or_404
from reports.base.attachments import attachment
from reports.crosstab.model import MODEL, ModelTable, model_table, model_view, triples
from reports.crosstab.queries import NoCrosstabError
from reports.estimates.queries import WindowError, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404, refused
from reports.exports.findings.crosstabs import numbers_of
from reports.exports.findings.tables import Findings, Record, head_of, tail_of
from reports.exports.formats.choosing import CROSSTAB
from reports.exports.formats.columns import Kind
from reports.studies.texts import status_reason


@file_of_study
def download_model(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """All combinations of the three indicators that the address names."""
    study, found = study_or_404(request, slug), format_or_404(CROSSTAB, file_format)
    try:
        table = model_table(model_view(request.GET, triples(study), visitors=visitor_unions(study)))
    except (WindowError, NoCrosstabError) as error:
        return refused(error)
    if table.cells is None:
        return refused(ExportError(status_reason(table.report.status, study)))
    findings = model_findings(table)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


def model_findings(table: ModelTable) -> Findings:
    """A row for each combination; each says that it is modelled."""
    view, report = table.view, table.report
    names = ", ".join(part.name for part in view.triple.parts)
    return Findings(
        name=f"{view.study.slug}_{'_'.join(part.slug for part in view.triple.parts)}_model",
        title=gettext("Three-way tables (model)") + f": {names}",
        sheet="model",
        reports=(report,),
        words=(model_words(table),),
        before=model_head(table)
        | {name: " ".join(map(str, of_pairs)) for name, of_pairs in pair_columns(table).items()},
        rows=model_rows(table),
        after=tail_of(report),
        kinds={"market_share": Kind.NUMBER} | dict.fromkeys(pair_columns(table), Kind.TEXT),
        codes={"model": {MODEL: model_words(table)}},
    )


def model_head(table: ModelTable) -> Record:
    """Facts of the window: answers of all pairs together, and the largest epsilon of one answer."""
    pairs = [head_of(report) for report in table.pairs]
    together = {
        "n_reports": sum(pair["n_reports"] or 0 for pair in pairs),
        "epsilon": max(pair["epsilon"] for pair in pairs),
    }
    return head_of(table.report) | together


def pair_columns(table: ModelTable) -> dict[str, list[Any]]:
    """Facts of each pair that the model is made of, in plan order."""
    pairs = [head_of(report) for report in table.pairs]
    names = {"pairs": "indicator", "pairs_n_reports": "n_reports", "pairs_epsilon": "epsilon"}
    return {column: [pair[name] for pair in pairs] for column, name in names.items()}


def model_words(table: ModelTable) -> str:
    """Explain what the table is."""
    pairs = ", ".join(joint.indicator.slug for joint in table.view.triple.joints)
    return gettext(
        "This is a model, not an estimate. These joint indicators are first adjusted until they "
        "agree with one another: %(pairs)s. The model is the table with the maximum entropy among "
        "all tables that agree with them. The intervals are model intervals: they account for noise and "
        "sampling, but not for the assumption that the relationship between two indicators does not "
        "depend on the third. Even if this assumption is correct, 95%% coverage is not guaranteed. On "
        "average, at least 93 of 100 model intervals contain the true share. In very uneven tables, the "
        "interval of a single cell may contain it in only 80 of 100 cases."
    ) % {"pairs": pairs}


def model_rows(table: ModelTable) -> list[Record]:
    """Share of all visitors of each combination, in plan order."""
    one, other, third = table.view.triple.parts
    return [
        {
            "model": MODEL,
            "row_indicator": one.slug,
            "row_category": row,
            "column_indicator": other.slug,
            "column_category": column,
            "third_indicator": third.slug,
            "third_category": last,
        }
        | numbers_of(figure)
        for row, of_row in zip(one.file_names, table.cells or [], strict=True)
        for column, of_column in zip(other.file_names, of_row, strict=True)
        for last, figure in zip(third.file_names, of_column, strict=True)
    ]
