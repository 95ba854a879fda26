"""Documents of OGC API Features."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from shapely import union_all
from shapely.geometry import shape

from reports.api.answers import Content, Page, as_json, page_links
from reports.api.features.collections import Collection, within
from reports.base.problems import ProblemError
from reports.exports.formats.choosing import content_type
from reports.exports.formats.geographic import outlines_of
from reports.studies.models import Study

Document = dict[str, Any]

_SPEC: Final = "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/"
CONFORMS_TO: Final = [_SPEC + "core", _SPEC + "geojson"]
_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_GREGORIAN: Final = "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"
_JSON: Final = "application/json"
_GEOJSON: Final = content_type("geojson")


def landing(request: HttpRequest, study: Study) -> Document:
    """The landing page of a study."""
    links = [
        _link("self", _address(request, study, "/")),
        _link("service-desc", request.build_absolute_uri(reverse("reading:root") + "openapi.json")),
        _link("conformance", _address(request, study, "/conformance")),
        _link("data", _address(request, study, "/collections")),
    ]
    return {"title": study.shown_name, "links": links}


def listing(request: HttpRequest, study: Study, found: Sequence[Collection]) -> Document:
    """All collections; without any, the title says why."""
    title = gettext("The zones of this study have no known boundaries, so there are no map collections.")
    return {
        "title": study.shown_name if found else title,
        "links": [_link("self", _address(request, study, "/collections"))],
        "collections": [described(request, each) for each in found],
    }


def described(request: HttpRequest, found: Collection) -> Document:
    """One collection with its extent: all zones and all days of the study."""
    study, address = found.study, f"/collections/{found.name}"
    west_to_north = union_all([shape(each["geometry"]) for each in outlines_of(found.area)]).bounds
    zone = ZoneInfo(study.timezone)
    ends = (
        datetime.combine(study.first_day, time.min, zone),
        datetime.combine(study.last_day, time(23, 59, 59), zone),
    )
    interval = [f"{each.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z" for each in ends]
    return {
        "id": found.name,
        "title": found.title,
        "itemType": "feature",
        "crs": [_CRS84],
        "extent": {
            "spatial": {"bbox": [list(west_to_north)], "crs": _CRS84},
            "temporal": {"interval": [interval], "trs": _GREGORIAN},
        },
        "links": [
            _link("self", _address(request, study, address)),
            _link("items", _address(request, study, f"{address}/items"), kind=_GEOJSON),
        ],
    }


def page_of_items(request: HttpRequest, found: Collection, *, page: Page, bbox: str, time: str) -> Content:
    """One page of the features in a box and a window."""
    features = within(found.features(time), bbox)
    shown, links = page.cut(features), page_links(request, page, count=len(features))
    body = {
        "type": "FeatureCollection",
        "links": [
            _link("self", request.build_absolute_uri(), kind=_GEOJSON),
            *(_link(name, address, kind=_GEOJSON) for name, address in links.items()),
        ],
        "numberMatched": len(features),
        "numberReturned": len(shown),
        "features": shown,
    }
    return Content(text=as_json(body).text, content_type=_GEOJSON, links=links)


def one_item(request: HttpRequest, found: Collection, *, number: int, time: str) -> Content:
    """The feature of a zone; ProblemError (404) if the collection does not have it."""
    feature = next((each for each in found.features(time) if each["id"] == number), None)
    if feature is None:
        raise ProblemError(404, gettext("The collection has no feature with this number."))
    collection = _address(request, found.study, f"/collections/{found.name}")
    links = [
        _link("self", request.build_absolute_uri(), kind=_GEOJSON),
        _link("collection", collection),
    ]
    return Content(text=as_json(feature | {"links": links}).text, content_type=_GEOJSON)


def _address(request: HttpRequest, study: Study, rest: str) -> str:
    return request.build_absolute_uri(f"{reverse('reading:root')}studies/{study.slug}/features{rest}")


def _link(relation: str, address: str, *, kind: str = _JSON) -> dict[str, str]:
    return {"href": address, "rel": relation, "type": kind}
