"""The largest pairs of places, or the most visited zones, as a short list for tiles."""

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from reports.crosstab.queries import Figure
from reports.estimates.options import VALUES_CHOICES
from reports.flows import texts, visited_texts
from reports.flows.queries import LARGEST, Flows
from reports.flows.visited import Visited

_ARROW: Final = " \u2192 "


@dataclass(frozen=True, slots=True, kw_only=True)
class TopList:
    """Places or pairs whose figures are larger than noise, the largest first, at most `LARGEST`.

    place : head of the column of names
    figures : heads of the columns of figures: an amount and a share
    rows : names of one or two places, and their figure
    words : summary of the list
    between : text between two names
    """

    place: str
    figures: tuple[str, str]
    rows: list[tuple[tuple[str, ...], Figure]]
    words: str
    between: str
    of_moves: bool = False


def top_list(found: Flows | Visited) -> TopList:
    """Shorten flows or visits to their list."""
    if isinstance(found, Visited):
        names, figures = found.items.names, found.figures
        return TopList(
            place=gettext("Pair of zones") if found.items.in_pairs else gettext("Zone"),
            figures=(visited_texts.people_title(found), visited_texts.share_title(found)),
            rows=[(names[code], figures[code]) for code in found.listed[:LARGEST]],
            words=visited_texts.list_words(found),
            between=" + ",
        )
    found = found.shown(VALUES_CHOICES[0])
    return TopList(
        place=_ARROW.join((found.pair.origin.name, found.pair.destination.name)),
        figures=(texts.people_title(found), texts.share_title(found)),
        rows=[(texts.flow_names(found, flow), flow.figure) for flow in found.listed[:LARGEST]],
        words=texts.list_words(found),
        between=_ARROW,
        of_moves=found.pair.moves is not None,
    )
