"""A study as a file for another installation."""

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from mobility.plans.study_files import export_study
from mobility.vault.models.subscribers import VaultStudy
from reports.studies.policies import Role, require_role


@require_GET
@require_role(Role.ADMINISTRATOR)
def export(request: HttpRequest, slug: str) -> HttpResponse:  # noqa: ARG001 - every view has one
    """Contents read by `import_study`: definition, area and plan versions; no data and no keys."""
    row = get_object_or_404(VaultStudy, slug=slug)
    text = json.dumps(export_study(row), ensure_ascii=False, indent=1)
    disposition = f'attachment; filename="{slug}-study.json"'
    return HttpResponse(text, content_type="application/json", headers={"Content-Disposition": disposition})
