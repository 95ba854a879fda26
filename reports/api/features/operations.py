"""Addresses of OGC API Features. Their names and members are those of the standard (OGC 17-069r4)."""

from typing import Annotated, Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_noop
from ninja import Query, Router

from reports.api import schemas
from reports.api.answers import Page, answer, as_json, refuse_unknown
from reports.api.auth import study_of
from reports.api.features import answers
from reports.api.features.collections import collection_of, collections_of
from reports.api.parameters import Offset
from reports.estimates.fingerprints import state_of

ITEMS = 1000
ITEMS_MAX = 10_000
ROOT = "/studies/{slug:study}/features"
COLLECTION = ROOT + "/collections/{slug:collection}"
# The standard requires that a larger limit is no error, but means the largest.
ItemLimit = Annotated[int, Query(ge=1, description="features per page; more than 10,000 mean 10,000")]
Box = Annotated[str, Query(description="west,south,east,north in degrees (WGS 84)")]
Time = Annotated[
    str, Query(description="day or interval, such as 2017-05-31/2017-06-01; .. leaves an end open")
]

router = Router()
_RESPONSES: dict[int, Any] = {
    200: dict[str, Any],
    304: None,
    **dict.fromkeys((400, 401, 404), schemas.Problem),
}


@router.get(ROOT, include_in_schema=False)
@router.get(ROOT + "/", response=_RESPONSES, summary=gettext_noop("OGC API Features: landing page"))
def features(request: HttpRequest, study: str) -> HttpResponseBase:
    """Links to the collections, for map programs such as QGIS."""
    refuse_unknown(request)
    found = study_of(request, study)
    build = lambda: as_json(answers.landing(request, found))  # noqa: E731
    return answer(request, state=state_of([found]), build=build)


@router.get(ROOT + "/conformance", response=_RESPONSES, summary=gettext_noop("OGC API Features: conformance"))
def conformance(request: HttpRequest, study: str) -> HttpResponseBase:
    """The parts of the standard that this service implements."""
    refuse_unknown(request)
    study_of(request, study)
    return answer(request, state=None, build=lambda: as_json({"conformsTo": answers.CONFORMS_TO}))


@router.get(ROOT + "/collections", response=_RESPONSES, summary=gettext_noop("OGC API Features: collections"))
def collections(request: HttpRequest, study: str) -> HttpResponseBase:
    """The outlines of the zones, and each indicator whose categories are zones."""
    refuse_unknown(request)
    found = study_of(request, study)
    build = lambda: as_json(answers.listing(request, found, collections_of(found)))  # noqa: E731
    return answer(request, state=state_of([found]), build=build)


@router.get(COLLECTION, response=_RESPONSES, summary=gettext_noop("OGC API Features: a collection"))
def collection(request: HttpRequest, study: str, collection: str) -> HttpResponseBase:
    """Title and extent of a collection."""
    refuse_unknown(request)
    found = collection_of(study_of(request, study), collection)
    build = lambda: as_json(answers.described(request, found))  # noqa: E731
    return answer(request, state=state_of([found.study]), build=build)


@router.get(
    COLLECTION + "/items",
    response=_RESPONSES,
    summary=gettext_noop("OGC API Features: features of a collection"),
)
def items(
    request: HttpRequest,
    study: str,
    collection: str,
    limit: ItemLimit = ITEMS,
    offset: Offset = 0,
    bbox: Box = "",
    datetime: Time = "",
) -> HttpResponseBase:
    """A GeoJSON feature for each zone or square, with the estimates of one window; default: all days."""
    refuse_unknown(request, "limit", "offset", "bbox", "datetime")
    found = collection_of(study_of(request, study), collection)
    page = Page(limit=min(limit, ITEMS_MAX), offset=offset)
    build = lambda: answers.page_of_items(request, found, page=page, bbox=bbox, time=datetime)  # noqa: E731
    return answer(request, state=found.state(datetime), build=build)


@router.get(
    COLLECTION + "/items/{int:feature}",
    response=_RESPONSES,
    summary=gettext_noop("OGC API Features: a single feature"),
)
def item(
    request: HttpRequest, study: str, collection: str, feature: int, datetime: Time = ""
) -> HttpResponseBase:
    """A zone by its number in the study, from 1, or a square by its code."""
    refuse_unknown(request, "datetime")
    found = collection_of(study_of(request, study), collection)
    build = lambda: answers.one_item(request, found, number=feature, time=datetime)  # noqa: E731
    return answer(request, state=found.state(datetime), build=build)
