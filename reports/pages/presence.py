"""Presence by slot of time: the page of a day, and the frames of its map."""

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.base import formats
from reports.estimates.options import MAX_LINES
from reports.estimates.queries import WindowError
from reports.forecasts.crowds import crowded
from reports.forecasts.texts import crowd_sentence
from reports.maps import slot_frames
from reports.maps.shapes import AreaShapes, area_shapes
from reports.maps.zones import map_document
from reports.slots import charts, facts, texts
from reports.slots.queries import NoSlotsError, Presence, SlotStatus, SlotZone, presence
from reports.slots.query import AT, DAY, MEDIAN, WITH, ZONE, View, default_view, time_text, view_of
from reports.studies.models import Area, Study
from reports.studies.texts import crumbs_to


@require_safe
@readers_only
def slots(request: HttpRequest, slug: str) -> HttpResponse:
    """People by zone in the slot and on the day of the address; an address that is none has the default."""
    study = study_or_404(request, slug)
    found = presence_or_404(study)
    context: dict[str, Any] = {
        "study": study,
        "crumbs": crumbs_to(study),
        "crowded": [crowd_sentence(each) for each in crowded([study])],
    }
    status = 200
    try:
        view = view_of(request.GET, found)
    except WindowError as error:
        view, status = default_view(found), 400
        context["problem"] = str(error)
    return render(request, "slots/presence.html", context | page_context(view), status=status)


@require_safe
@readers_only
@gzip_page
def frames(request: HttpRequest, slug: str) -> HttpResponse:
    """A frame for each slot of the day of the address, as JSON, with the classes of the page."""
    study = study_or_404(request, slug)
    found = presence_or_404(study)
    try:
        view = view_of(request.GET, found)
    except WindowError:
        raise Http404 from None
    drawn = _shapes(view)
    if drawn is None:
        raise Http404
    _, zones = drawn
    scale = slot_frames.slot_scale(found, level=view.level)
    made = [slot_frames.slot_frame(view, slot, zones=zones, scale=scale) for slot in view.day_slots]
    return JsonResponse({"frames": made}, json_dumps_params={"ensure_ascii": False})


def presence_or_404(study: Study) -> Presence:
    """All slots of a study that has some."""
    try:
        return presence(study)
    except NoSlotsError:
        raise Http404 from None


def page_context(view: View, *, is_shared: bool = False) -> dict[str, Any]:
    """All that the page shows of a view; a shared page has no more."""
    found = view.found
    status = found.status(view.slot)
    compared = facts.change(view)
    return {
        "view": view,
        "query": view.query(),
        "title": texts.slot_title(found, view.slot),
        "sentence": texts.sentence(view),
        "status": status,
        "reason": "" if status == SlotStatus.OK else texts.status_reason(status, view),
        "change": texts.change_sentence(view, compared) if compared else "",
        "facts": texts.fact_sentences(view),
        "has_data": len(found.counts) > 0,
        "is_exact": not found.half_width,
        "privacy": texts.privacy_sentences(found),
        "counting": texts.counting_sentences(found),
        "figure": charts.day_figure(view),
        "bands": texts.bands_words(found),
        "summary": _summary(view),
        **_choices(view),
        **_tables(view, is_shared=is_shared),
        **_week(view),
        **_map(view),
    }


def _choices(view: View) -> dict[str, Any]:
    """Fields of the form and ways to the neighbours."""
    found, study = view.found, view.found.study
    step = {"earlier": view.slot - 1, "later": view.slot + 1}
    ways = {
        name: _slot_query(view, slot) if 0 <= slot < len(found.clock) else "" for name, slot in step.items()
    }
    return ways | {
        "days": [
            (each.isoformat(), formats.day_title(each), day == view.day, day == view.other)
            for day in range(1, study.days + 1)
            for each in [study.date_of(day)]
        ],
        "day": view.date.isoformat(),
        "at": time_text(found, view.slot),
        "times": [(time_text(found, slot), slot == view.slot) for slot in view.day_slots],
        "levels": [(level, texts.level_title(level), level == view.level) for level in found.levels],
        "level": view.level,
        "with_weekday": view.other == View.OF_WEEKDAY,
        "median": MEDIAN,
        "all_zones": [
            (str(zone.place), zone.shown_name, zone in view.zones) for zone in found.at_level(view.level)
        ],
        "max_lines": MAX_LINES,
    }


def _slot_query(view: View, slot: int) -> str:
    """Address of the view at another slot, which may be of another day."""
    day = view.found.study.date_of(int(view.found.clock.day[slot]))
    beside = {} if view.other != int(view.found.clock.day[slot]) else {WITH: ""}
    return view.query(**{DAY: day.isoformat(), AT: time_text(view.found, slot)}, **beside)


def _tables(view: View, *, is_shared: bool) -> dict[str, Any]:
    """Figures of the day by slot, and of the slot by zone."""
    found, zones = view.found, view.found.at_level(view.level)
    ok = [slot for slot in view.day_slots if found.status(slot) == SlotStatus.OK]
    published = texts.number_pairs(found, range(ok[0], ok[-1] + 1) if ok else range(0), view.zones)
    rows = [
        {
            "time": time_text(found, slot),
            "is_chosen": slot == view.slot,
            "cells": _cells(next(published))
            if slot in ok
            else [_blank(found.status(slot))] * len(view.zones),
        }
        for slot in view.day_slots
    ]
    pairs = [("", "")] * len(zones)
    if view.slot in ok:
        (pairs,) = texts.number_pairs(found, range(view.slot, view.slot + 1), zones)
    of_zones = [
        _zone_row(view, zone, pair, is_shared=is_shared) for zone, pair in zip(zones, pairs, strict=True)
    ]
    return {"slot_rows": rows, "zone_rows": of_zones}


def _zone_row(view: View, zone: SlotZone, pair: tuple[str, str], *, is_shared: bool) -> SafeString:
    """Name and figures of a zone, or the status; in Python, since there are hundreds."""
    number, interval = pair
    name = escape(zone.shown_name)
    if not is_shared:
        name = SafeString(f'<a href="?{escape(_with_first(view, zone))}">{name}</a>')
    cells = f'<td class="number">{number}</td>' + (f'<td class="number">{interval}</td>' if interval else "")
    if not number:
        span = ' colspan="2"' if view.found.half_width else ""
        cells = f'<td class="number"{span}>{escape(texts.status_word(view.found.status(view.slot)))}</td>'
    return SafeString(f'<th scope="row">{name}</th>{cells}')


def _cells(pairs: Sequence[tuple[str, str]]) -> list[SafeString]:
    """Cells of a table with number and interval; in Python, since there are hundreds."""
    return [
        SafeString(f'{number}<br><span class="muted small">{interval}</span>' if interval else number)
        for number, interval in pairs
    ]


def _blank(status: SlotStatus) -> SafeString:
    sign, word = escape(texts.status_sign(status)), escape(texts.status_word(status))
    return SafeString(
        f'<span class="blank"><span class="blank__sign" aria-hidden="true">{sign}</span>{word}</span>'
    )


def _with_first(view: View, zone: SlotZone) -> str:
    """Address of the view with this zone as the first."""
    others = [each.place for each in view.zones if each is not zone]
    zones = [zone.place, *others][:MAX_LINES]
    return "&".join([view.query(zone=""), *(f"{ZONE}={place}" for place in zones)])


def _week(view: View) -> dict[str, Any]:
    week = facts.week(view.found, view.zones[0])
    return {
        "heat_rows": charts.heat_rows(week),
        "heat_legend": list(enumerate(charts.heat_legend(week), start=1)),
        "heat_heads": charts.weekday_heads(),
        "heat_half": week.half_width,
    }


def _shapes(view: View) -> tuple[AreaShapes, list[SlotZone | None]] | None:
    """Shapes of the area with the zone of the level that each shows; None without shapes."""
    area = Area.objects.filter(study=view.found.study).first()
    shapes = area_shapes(area) if area is not None else None
    if area is None or shapes is None or not shapes.zones:
        return None
    return shapes, slot_frames.zones_on_map(view, area, shapes)


def _map(view: View) -> dict[str, Any]:
    drawn = _shapes(view)
    if drawn is None or not len(view.found.counts):
        return {}
    shapes, zones = drawn
    scale = slot_frames.slot_scale(view.found, level=view.level)
    frame = slot_frames.slot_frame(view, view.slot, zones=zones, scale=scale)
    address = reverse("reports:presence_frames", args=[view.found.study.slug])
    return {
        "map_document": map_document(shapes, frame),
        "map_days": f"{address}?{view.query()}",
        "map_day": view.slot - view.day_slots.start + 1,
        "legend": slot_frames.slot_legend(scale),
        "layers": shapes.layers,
        "has_other_zones": None in zones,
        "map_summary": gettext("Map of the number of people by zone, %(slot)s.")
        % {"slot": texts.slot_title(view.found, view.slot)},
    }


def _summary(view: View) -> str:
    """Text alternative of the lines."""
    return gettext("Number of people by time slot on %(day)s: %(zones)s.") % {
        "day": formats.day_title(view.date),
        "zones": ", ".join(zone.shown_name for zone in view.zones),
    }
