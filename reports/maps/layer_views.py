"""The page where an administrator imports base layers for the maps of a study."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from reports.accounts.access import account, administrators_only, study_of_visitors
from reports.base import formats
from reports.maps.base_layers import LayersError, has_maps, import_layers
from reports.maps.scale import NOT_ASKED
from reports.maps.shapes import AreaShapes, area_shapes
from reports.studies.geography.files.rules import MAX_LAYERS
from reports.studies.models import Area, Study
from reports.studies.policies import Role, study_for
from reports.studies.texts import crumbs_to


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def layers(request: HttpRequest, slug: str) -> HttpResponse:
    """Layers of a study on a map, and a form that replaces or removes them."""
    study = study_of_visitors(study_for(request.user, slug, Role.ADMINISTRATOR))
    problems: list[str] = []
    if request.method == "POST":
        try:
            _import(request, study)
        except LayersError as error:
            problems = [str(each) for each in error.args]
        else:
            return redirect(request.path)
    area = Area.objects.filter(study=study).first()
    shapes = None if area is None else area_shapes(area)
    context = {
        "study": study,
        "crumbs": crumbs_to(study),
        "has_maps": has_maps(area),
        "layers": [] if shapes is None else shapes.layers,
        "map_document": None if shapes is None or not shapes.zones else _map(shapes),
        "problems": problems,
        "listed": request.POST.get("names", ""),
        "max_layers": MAX_LAYERS,
        "max_mb": settings.FILE_UPLOAD_MAX_MEMORY_SIZE // 1_000_000,
    }
    return render(request, "maps/layers.html", context, status=400 if problems else 200)


def _import(request: HttpRequest, study: Study) -> None:
    """Import what the form has; LayersError if it cannot be."""
    by = account(request).get_username()
    if "remove" in request.POST:
        import_layers(study, [], files={}, by=by)
        messages.success(request, gettext("The base layers were removed."))
        return
    files = {str(file.name): file.read() for file in request.FILES.getlist("files")}
    length = int(request.headers.get("Content-Length") or 0)
    limit = settings.FILE_UPLOAD_MAX_MEMORY_SIZE
    if not files and length > limit:  # the upload handler has dropped them
        text = gettext(
            "The files total %(size)s MB, but the limit is %(limit)s MB. Clip them to the area of the "
            "study, or run manage.py import_layers on the server."
        )
        sizes = {"size": formats.number(length // 1_000_000), "limit": formats.number(limit // 1_000_000)}
        raise LayersError(text % sizes)
    if not files:
        raise LayersError(gettext("Choose at least one file."))
    names = [line.strip() for line in request.POST.get("names", "").splitlines() if line.strip()]
    found, notes = import_layers(study, names or list(files), files=files, by=by)
    for note in notes:
        messages.warning(request, note)
    if found:
        messages.success(request, gettext("Base layers imported: %(names)s.") % {"names": ", ".join(found)})


def _map(shapes: AreaShapes) -> dict[str, object]:
    """Zones without figures, with the layers above them."""
    panel = {"blank": "", "classes": [NOT_ASKED] * len(shapes.names), "texts": shapes.shown_names}
    return {"shapes": shapes.to_json(), "frame": {"title": "", "query": "", "panels": [panel]}}
