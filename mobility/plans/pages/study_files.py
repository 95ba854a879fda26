"""A study as a file for another installation."""

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from mobility.plans.study_files import export_study
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.access import administrators_only
from reports.base.attachments import attachment


@require_GET
@administrators_only
def export(request: HttpRequest, slug: str) -> HttpResponse:  # noqa: ARG001 - every view has one
    """Contents read by `import_study`: definition, area and plan versions; no data and no keys."""
    row = get_object_or_404(VaultStudy, slug=slug)
    return attached(export_study(row), filename=f"{slug}-study.json")


def attached(content: object, *, filename: str) -> HttpResponse:
    """Return JSON as a file to keep."""
    text = json.dumps(content, ensure_ascii=False, indent=1)
    return attachment(text, content_type="application/json", name=filename)
