"""Slots of a day on a map: a frame for each, with the same classes of colours; `static/js/map.js` draws."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from django.utils.translation import gettext

from reports.maps.scale import NOT_ASKED, NOT_READ, Scale, fixed_scale
from reports.maps.shapes import AreaShapes
from reports.maps.zones import LegendRow, MapDocument
from reports.slots import texts
from reports.slots.queries import Presence, SlotStatus, SlotZone
from reports.slots.query import AT, View, time_text
from reports.studies.models import Area

_SLOTS_OF_SCALE: Final = 200


def zones_on_map(view: View, area: Area, shapes: AreaShapes) -> list[SlotZone | None]:
    """Zone of the level that each shape shows: itself, or the larger one that holds it; None = in none."""
    found = view.found
    place_of = {name: place for place, name in enumerate(area.zones)}
    places = [place_of[name] for name in shapes.names]
    zones = found.at_level(view.level)
    if not view.level:
        return [zones[place] for place in places]
    (within,) = (level["within"] for level in found.slots.levels if level["name"] == view.level)
    return [None if within[place] is None else zones[within[place]] for place in places]


def slot_scale(found: Presence, *, level: str) -> Scale:
    """Return one scale for all published slots of a level; noise below none is drawn as none."""
    zones = found.at_level(level)  # next to each other in the counts
    counts = found.counts[:, zones[0].place : zones[-1].place + 1]
    if not counts.size:
        return fixed_scale(np.zeros(0))
    # Bounds need the ends and about the middle of all values: of a season, some slots tell it.
    some = counts[:: -(-len(counts) // _SLOTS_OF_SCALE)]
    ends = [counts.min(), counts.max()]
    return fixed_scale(np.maximum(np.append(some, ends), 0).astype(np.float64) * found.scale)


def slot_frame(view: View, slot: int, *, zones: Sequence[SlotZone | None], scale: Scale) -> MapDocument:
    """One slot: class and text of each shape."""
    found, status = view.found, view.found.status(slot)
    classes, words = _shown(found, slot, zones, scale=scale)
    return {
        "title": texts.slot_title(found, slot),
        "query": view.query(**{AT: time_text(found, slot)}),
        "panels": [
            {
                "blank": "" if status == SlotStatus.OK else texts.status_word(status),
                "classes": classes,
                "texts": words,
            }
        ],
    }


def slot_legend(scale: Scale) -> list[LegendRow]:
    """Classes of a scale in words, from the lowest."""
    return [LegendRow(place=str(place), text=text) for place, text in enumerate(scale.labels(), start=1)]


def _shown(
    found: Presence, slot: int, zones: Sequence[SlotZone | None], *, scale: Scale
) -> tuple[list[int], list[str]]:
    """Class and text of each shape."""
    shown = [zone for zone in zones if zone is not None]
    if found.status(slot) == SlotStatus.OK:
        people = found.counts[slot - found.first_slot, [zone.place for zone in shown]] * found.scale
        classes = scale.classes(np.maximum(people, 0.0)).tolist()
        words = texts.figure_texts(found, slot, shown)
    else:
        classes = [NOT_READ] * len(shown)
        words = [texts.status_word(found.status(slot))] * len(shown)
    by_zone = iter(zip(shown, classes, words, strict=True))
    pairs = [
        (NOT_ASKED, gettext("not in any zone at this level")) if zone is None else _named(*next(by_zone))
        for zone in zones
    ]
    return [found_class for found_class, _ in pairs], [text for _, text in pairs]


def _named(zone: SlotZone, found_class: int, words: str) -> tuple[int, str]:
    return found_class, f"{zone.shown_name}\n{words}"
