"""Presence by slot as the API sends it; its contents are those of `reports.exports.presence.tables`."""

from collections.abc import Sequence
from itertools import chain

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.api.answers import Content, Page, answer, as_json, page_links
from reports.base.csv_texts import csv_text
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.exports.presence.selection import asked_days, asked_zones
from reports.exports.presence.tables import NAMES, SlotTable, head_of
from reports.exports.records import CONTENT_TYPES
from reports.slots.queries import NoSlotsError, presence
from reports.studies.models import Study


def presence_answer(
    request: HttpRequest,
    study: Study,
    *,
    days: tuple[str, str],
    zones: Sequence[str],
    level: str | None,
    page: Page,
    most: int,
    file_format: str,
) -> HttpResponseBase:
    """Slots between two days, a page of them.

    Parameters
    ----------
    most : figures of a page: with many zones it has fewer slots

    Raises
    ------
    ProblemError : the study has no slots
    WindowError : there is no such day, zone or level
    """
    try:
        first, last = asked_days(study, *days)
    except NoSlotsError as error:
        raise ProblemError(404, str(error)) from error
    found = presence(study, first_day=first, last_day=last)
    table = SlotTable(found=found, zones=asked_zones(zones, found, level=level))
    bounded = Page(limit=min(page.limit, max(1, most // len(table.zones))), offset=page.offset)
    return answer(
        request,
        state=state_of([study]),
        build=lambda: _page(request, table, page=bounded, file_format=file_format),
    )


def _page(request: HttpRequest, table: SlotTable, *, page: Page, file_format: str) -> Content:
    slots = table.slots[page.offset : page.offset + page.limit]
    links = page_links(request, page, count=len(table.slots))
    if file_format == "csv":
        after = list(table.about.values())
        rows = chain.from_iterable(table.rows_of(slot) for slot in slots)
        text = csv_text([*NAMES, *table.about], ([*row, *after] for row in rows))
        return Content(text=text, content_type=CONTENT_TYPES["csv"], links=links)
    body = {
        "presence": head_of(table),
        "items": list(table.records(slots)),
        "count": len(table.slots),
        "next": links.get("next"),
    }
    return Content(text=as_json(body).text, links=links)
