"""The lines of a day drawn on the server, as its page shows them."""

from typing import Final

import matplotlib
import numpy as np
from django.utils.translation import gettext
from matplotlib.figure import Figure

from reports.base import formats
from reports.estimates.options import MAX_LINES
from reports.exports.drawing.canvas import (
    COLOURS,
    ONE_AT_A_TIME,
    filled,
    new_figure,
    plain_axes,
    png_bytes,
    svg_bytes,
    value_axis,
    write_around,
)
from reports.exports.drawing.letters import legible
from reports.exports.facts import software_words
from reports.exports.presence.tables import SlotTable, provenance
from reports.slots import facts, texts
from reports.slots.query import View, default_view, time_text

_TICKS: Final = 12
_MARKERS: Final = ("o", "s", "D", "^", "P", "X", "*", "h")
_LEFT, _PLOT_IN = 0.085, 3.2


def to_png(table: SlotTable) -> bytes:
    """The chart, 1520 pixels wide."""
    with ONE_AT_A_TIME:
        return png_bytes(_drawn(table), metadata={"Software": software_words(), **_described(table)})


def to_svg(table: SlotTable) -> bytes:
    """The chart as vectors."""
    with ONE_AT_A_TIME:
        return svg_bytes(_drawn(table), metadata={"Creator": software_words(), **_described(table)})


def bare_svg(view: View) -> bytes:
    """The chart alone, for a document with its own titles and words; letters stay letters."""
    with ONE_AT_A_TIME, matplotlib.rc_context({"svg.fonttype": "none"}):
        return svg_bytes(_chart(view, above_in=0.1, below_in=0.0), metadata={})


def _described(table: SlotTable) -> dict[str, str]:
    view = _view(table)
    words = "; ".join(f"{name}: {value}" for name, value in provenance(table).items())
    return {"Title": legible(_title(view)), "Description": f"{texts.sentence(view)} {words}"}


def _view(table: SlotTable) -> View:
    return table.view or default_view(table.found)


def _title(view: View) -> str:
    return f"{gettext('Presence by time')} · {view.found.study.shown_name}"


def _drawn(table: SlotTable) -> Figure:
    view = _view(table)
    words = "\n".join(filled(legible(text)) for text in _small_print(view))
    bottom_in = 0.42 + 0.15 * (words.count("\n") + 1)
    figure = _chart(view, above_in=0.72, below_in=bottom_in)
    subtitle = f"{legible(view.found.study.shown_name)} · {formats.day_title(view.date)}"
    title = gettext("Presence by time")
    write_around(figure, title=title, subtitle=subtitle, words=words, words_in=bottom_in - 0.12)
    return figure


def _chart(view: View, *, above_in: float, below_in: float) -> Figure:
    """Lines and legend, with room for words above and below."""
    under_in = below_in + 0.25 * -(-(len(view.zones) + 1) // 3) + 0.5
    whole_in = _PLOT_IN + above_in + under_in
    figure = new_figure(height_in=whole_in)
    axes = plain_axes(figure, (_LEFT, under_in / whole_in, 0.985 - _LEFT, _PLOT_IN / whole_in))
    found, day_slots = view.found, view.day_slots
    x = np.arange(len(day_slots))
    for place, zone in enumerate(view.zones):
        colour = COLOURS[f"--chart-{place % MAX_LINES + 1}"]
        people, half = np.maximum(found.people(zone, day=view.day), 0), found.half_width
        axes.fill_between(
            x, np.maximum(people - half, 0), people + half, color=colour, alpha=0.14, linewidth=0
        )
        axes.plot(
            x, people, color=colour, linewidth=1.8, marker=_MARKERS[place % len(_MARKERS)],
            markersize=3, label=legible(zone.shown_name),
        )  # fmt: skip
    if (other := facts.other_people(view)) is not None:
        label = legible(f"{view.zones[0].shown_name}{formats.colon()} {texts.other_legend(view)}")
        axes.plot(x, np.maximum(other, 0), color=COLOURS["--muted"], linestyle="--", label=label)
    step = -(-len(day_slots) // _TICKS)
    axes.set_xticks(x[::step], [time_text(found, slot) for slot in day_slots[::step]])
    axes.set_xlim(-0.6, len(day_slots) - 0.4)
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
    value_axis(axes.yaxis, measure="visitors")
    axes.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.1), ncols=3, frameon=False, fontsize=8.5, borderaxespad=0.0
    )
    return figure


def _small_print(view: View) -> list[str]:
    found = view.found
    sentences = [*texts.privacy_sentences(found), *texts.counting_sentences(found), f"{software_words()}."]
    return [each for each in (texts.bands_words(found), " ".join(sentences)) if each]
