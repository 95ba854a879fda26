"""Coverage of days by each source, and the cells of a batch that the study does not know."""

import csv
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.views.decorators.http import require_GET

from mobility.batches import queries
from mobility.batches.pages.access import batch_or_404, crumbs_to, operators_only, vault_study_or_404
from mobility.batches.quality.coverage import coverage_of
from mobility.batches.quality.facts import Facts
from mobility.uploads.coverage_calendar import calendars, legend
from mobility.vault.profiles import opt_out_refusal
from reports.base.attachments import attachment
from reports.studies.studyfile import StudyDefinition


@require_GET
@operators_only
def coverage(request: HttpRequest, slug: str) -> HttpResponse:
    """Calendar of each source, and its days with what is wrong with them."""
    row = vault_study_or_404(request, slug)
    head = queries.study_head(row.pk)
    found = coverage_of(row.pk)
    context = {
        "study": head,
        "no_opt_outs": opt_out_refusal(StudyDefinition.from_json(row.definition)) if head.of_events else None,
        "calendars": calendars(found),
        "unattributed": found.unattributed,
        "legend": legend(),
        "weekdays": [(WEEKDAYS_ABBR[weekday], WEEKDAYS[weekday]) for weekday in range(7)],
        "crumbs": crumbs_to(head.shown_name, head.slug),
    }
    return render(request, "uploads/coverage.html", context)


@require_GET
@operators_only
def unmatched_cells(request: HttpRequest, batch_id: UUID) -> HttpResponse:
    """Cells of a batch that the area does not list, with their rows, as CSV."""
    batch = batch_or_404(request, batch_id)
    name = f"unmatched-cells-{batch_id}.csv"
    response = attachment("", content_type="text/csv; charset=utf-8", name=name)
    writer = csv.writer(response, lineterminator="\n")
    writer.writerow(("cell_id", "rows"))
    # Only texts of the form of the study's own cells are kept, no formulas: mobility.extracts.cells.unlisted.
    writer.writerows(Facts.of(batch.checks).unmatched_cells)
    return response
