"""Collections of features of a study: outlines of zones, indicators that a map can show, reported places."""

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext
from shapely import Geometry, box, union_all
from shapely.geometry import shape

from ldp.geo.location import LocationSpec
from reports.api.places import listed_squares
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.estimates.locations import check_mapped, location_spec, windows_with_maps
from reports.estimates.picker import default_window
from reports.estimates.queries import Window, visitor_unions, window_from_dates
from reports.exports.formats.geographic import Feature, features_of, outlines_of
from reports.exports.places.geographic import square_rings
from reports.exports.places.selection import select_places, window_record
from reports.exports.selection import select_window
from reports.maps.actions import state_of_places
from reports.maps.zones import zones_of
from reports.studies.models import Area, Indicator, Study

OUTLINES, GRID = "zones", "grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Features of one kind; without an indicator, the outlines of the zones."""

    name: str
    area: Area
    indicator: Indicator | None

    @property
    def study(self) -> Study:
        return self.area.study

    @property
    def title(self) -> str:
        return self.indicator.shown_name if self.indicator else gettext("Zones")

    def state(self, time: str) -> list[object]:  # noqa: ARG002 - squares need it
        """Everything that decides the features."""
        return [state_of([self.study])]

    def features(self, time: str) -> list[Feature]:
        """All features with a geometry, by zone; `id` is the number of the zone in the study, from 1.

        Parameters
        ----------
        time : the parameter `datetime`, whose days in the study are the window; none of them: no feature

        Raises
        ------
        ProblemError : `time` is no day and no interval
        WindowError : the indicator has no such window
        """
        window = _window(self.study, time) if time else None
        if self.indicator is None:
            found = {each["properties"]["zone"]: each for each in outlines_of(self.area)}
        elif time and window is None:
            return []
        else:
            asked = window or default_window(self.indicator, visitor_unions(self.study))
            rows = features_of(select_window(self.indicator, asked))
            found = {each["properties"]["category"]: each for each in rows if each["geometry"]}
        zones = enumerate(self.area.zones, start=1)
        return [{"id": number, **found[name]} for number, name in zones if name in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(Collection):
    """Squares of the grid of reported places, without empty ones; `id` is the code of the square, from 0."""

    spec: LocationSpec
    indicator: Indicator | None = None

    @property
    def title(self) -> str:
        return gettext("Grid squares of reported places")

    def state(self, time: str) -> list[object]:
        window = self._window(time)
        return [state_of([self.study]), *(state_of_places(self.study, window) if window else [])]

    def features(self, time: str) -> list[Feature]:
        """Return its squares; without `time` of all days, or the first one if maps are of single days."""
        window = self._window(time)
        if window is None:
            return []
        check_mapped(window, self.study, self.spec)
        places = select_places(self.study, window)
        about = window_record(places)
        rings = square_rings(places)
        return [
            {
                "type": "Feature",
                "id": each["square"],
                "properties": {**about, **each},
                "geometry": {"type": "Polygon", "coordinates": [rings[each["square"]].tolist()]},
            }
            for each in listed_squares(places, is_all=False)
        ]

    def _window(self, time: str) -> Window | None:
        if time:
            return _window(self.study, time)
        whole, windows = Window(1, self.study.days), windows_with_maps(self.study, self.spec)
        return whole if whole in windows else windows[0]


def collections_of(study: Study) -> list[Collection]:
    """All collections; none if no zone of the study has a known shape.

    An indicator named "zones" takes the place of the outlines: its features have them, too. One named "grid"
    takes that of the grid.
    """
    area = Area.objects.filter(study=study).exclude(outlines=[]).select_related("study").first()
    if area is None:
        return []
    indicators = [each for each in study.indicators.select_related("study") if zones_of(each)]
    by_name: dict[str, Indicator | None] = {OUTLINES: None} | {each.slug: each for each in indicators}
    found = [Collection(name=name, area=area, indicator=each) for name, each in by_name.items()]
    spec = location_spec(study)
    if spec is not None and GRID not in by_name:
        found.append(Squares(name=GRID, area=area, spec=spec))
    return found


def collection_of(study: Study, name: str) -> Collection:
    """One collection; ProblemError (404) if there is none of that name."""
    found = next((each for each in collections_of(study) if each.name == name), None)
    if found is None:
        raise ProblemError(404, gettext("The study has no collection with this name."))
    return found


def within(features: list[Feature], bbox: str) -> list[Feature]:
    """Features that intersect a box; all without one.

    ProblemError (400) if `bbox` is not west,south,east,north, or the same with heights.
    """
    if not bbox:
        return features
    asked = _box(bbox)
    return [each for each in features if shape(each["geometry"]).intersects(asked)]


def _box(text: str) -> Geometry:
    """The box; one whose west is beyond its east crosses the date line."""
    try:
        values = [float(part) for part in text.split(",")]
        west, south, east, north = values if len(values) == 4 else (*values[:2], *values[3:5])
        if len(values) not in (4, 6) or not (
            -90 <= south <= north <= 90 and max(abs(west), abs(east)) <= 180
        ):
            raise ValueError
    except ValueError:
        text = gettext("`bbox` must be four numbers in degrees: west,south,east,north.")
        raise ProblemError(400, text) from None
    if west <= east:
        return box(west, south, east, north)
    return union_all([box(west, south, 180, north), box(-180, south, east, north)])


def _window(study: Study, text: str) -> Window | None:
    """Days of the study in an interval; None if there are none."""
    try:
        ends = [None if each in ("", "..") else _day(study, each) for each in text.split("/")]
        first, last = ends if len(ends) == 2 else (*ends, *ends)
        first, last = first or date.min, last or date.max
        if first > last:
            raise ValueError
    except (ValueError, OverflowError):  # an instant at the end of the calendar has no local day
        text = gettext("`datetime` must be a day or an interval, such as 2017-05-31/2017-06-01.")
        raise ProblemError(400, text) from None
    first, last = max(first, study.first_day), min(last, study.last_day)
    return window_from_dates(study, first, last) if first <= last else None


def _day(study: Study, text: str) -> date:
    """A date, or the local day of an instant (RFC 3339); ValueError or OverflowError if neither."""
    if len(text) == len("2017-05-31"):
        return date.fromisoformat(text)
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError
    return instant.astimezone(ZoneInfo(study.timezone)).date()
