"""The documentation, read inside the product."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.static import serve

from reports.help.rendering import START, chapter, chapters

# Files that chapters show or link to.
FILES = (".svg", ".png", ".csv", ".json")


@require_safe
@login_required
def page(request: HttpRequest, path: str) -> HttpResponseBase:
    """Show a chapter, or a file that one shows or links to."""
    if path in chapters():
        context = {"chapter": chapter(path), "chapters": chapters(), "path": path, "is_start": path == START}
        return render(request, "help/chapter.html", context)
    if path.endswith(FILES):
        try:
            return serve(request, path, document_root=str(settings.BASE_DIR / "docs"))
        except OSError as error:  # a name that the file system refuses, such as one that is too long
            raise Http404 from error
    raise Http404
