"""The data protection pack of a study: as a page, as Markdown, as a document."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reports.accounts.access import overseers_only, study_or_404
from reports.base.attachments import attachment
from reports.dpia import dpia_pack, to_pdf
from reports.dpia.markdown import to_markdown
from reports.ledger.handed_out import handed_out
from reports.studies.texts import crumbs_to


@require_safe
@overseers_only
def dpia(request: HttpRequest, slug: str) -> HttpResponse:
    """Both documents, and what is left to complete."""
    study = study_or_404(request, slug)
    context = {"study": study, "pack": dpia_pack(study), "crumbs": crumbs_to(study)}
    return render(request, "privacy/dpia.html", context)


@require_safe
@overseers_only
@handed_out
def download(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    """The pack as a file; `ending` is md or pdf."""
    study = study_or_404(request, slug)
    pack = dpia_pack(study)
    if ending == "md":
        content, kind = to_markdown(pack).encode(), "text/markdown; charset=utf-8"
    else:
        content, kind = to_pdf(pack), "application/pdf"
    return attachment(content, content_type=kind, name=f"{study.slug}_dpia.{ending}")
