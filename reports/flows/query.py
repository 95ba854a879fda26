"""The view in an address: a pair of places, days, and the destination of the catchment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from reports.crosstab.query import INDICATOR
from reports.estimates.options import VALUES, VALUES_CHOICES, asked_values
from reports.estimates.picker import window_in_address, window_query
from reports.estimates.queries import Window, WindowError
from reports.flows.pairs import PlacePair
from reports.studies.models import Study

ZONE: Final = "zone"
_SHOWN: Final = 40  # characters of a parameter in a refusal
_MOST_DIGITS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """Contents of the page; `zone` is the code of a destination, None = no catchment.

    `values` are "consistent" or "unbiased"; of moves there are unbiased ones only.
    """

    pair: PlacePair
    window: Window
    zone: int | None = None
    values: str = VALUES_CHOICES[0]

    def query(self, kept: str = "", **changes: str) -> str:
        """The view as a part of an address: `kept`, by default its days, and parameters with changes."""
        days = kept or window_query(self.pair.indicator.study, self.window)
        values = {INDICATOR: self.pair.indicator.slug, ZONE: "" if self.zone is None else str(self.zone)}
        values = values | {VALUES: self.values} | changes
        if values[VALUES] == VALUES_CHOICES[0]:
            del values[VALUES]
        return f"{days}&{urlencode({name: text for name, text in values.items() if text})}"


def flow_view(query: QueryDict, pairs: Sequence[PlacePair]) -> FlowView:
    """The view that an address asks for, by default of all days and the first pair.

    Parameters
    ----------
    pairs : at least one

    Raises
    ------
    WindowError : the address names something that there is not
    """
    pair = pair_of(query.get(INDICATOR, ""), pairs)
    window = asked_days(query, pair.indicator.study)
    zone = _zone(query.get(ZONE, ""), pair)
    return FlowView(pair=pair, window=window, zone=zone, values=asked_values(query))


def asked_days(query: QueryDict, study: Study) -> Window:
    """Days of an address, by default all: flows and visits of several days are added up."""
    return window_in_address(query, study) or Window(1, study.days)


def pair_of(slug: str, pairs: Sequence[PlacePair]) -> PlacePair:
    """The pair of places of this name; without a name the first."""
    for pair in pairs:
        if slug in ("", pair.indicator.slug):
            return pair
    known = ", ".join(pair.indicator.slug for pair in pairs)
    raise WindowError(
        gettext("There is no pair of places named “%(name)s”. Pairs in this study: %(known)s.")
        % {"name": slug[:_SHOWN], "known": known}
    )


def _zone(text: str, pair: PlacePair) -> int | None:
    if not text:
        return None
    most = len(pair.destination.file_names) - 2  # the last one is no zone
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) <= most:
        return int(text)
    raise WindowError(
        gettext("“%(name)s” must be a number from 0 to %(most)d, not “%(text)s”.")
        % {"name": ZONE, "most": most, "text": text[:_SHOWN]}
    )
