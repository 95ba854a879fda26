"""Maps: zones with their classes and texts; reported places, maps that a worker computes of them; pages."""

from dataclasses import replace
from datetime import timedelta
from html import escape, unescape
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from ldp.geo.deconvolution import deconvolve
from ldp.geo.transition import Transition
from reports import tasks
from reports.base import formats
from reports.base.status import Status
from reports.estimates import locations
from reports.estimates import queries as selectors
from reports.estimates import texts as estimates_texts
from reports.estimates.options import ReportOptions
from reports.estimates.queries import Window, WindowReport, window_report
from reports.exports.drawing.maps import _legend
from reports.maps import actions as densities
from reports.maps import density as maps_density
from reports.maps import texts
from reports.maps import zones as maps
from reports.maps.scale import HIDDEN, MAX_CLASSES, NOT_ASKED, NOT_READ, SCALES, fixed_scale
from reports.maps.shapes import area_shapes, wound
from reports.models import DayNote, DensityMap, LocationTally, Study
from reports.sharing import actions as access
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import GRID, HOME, LOCATION, ZONES
from tests.reports.page_texts import Markup, data_of, get, page, text_of

pytestmark = pytest.mark.django_db
ESTIMATE = ReportOptions()
WHOLE = Window(1, 4)
ALL_DAYS = {"from": "2024-05-30", "to": "2024-06-02"}
CAPPED = replace(LOCATION, max_values=2)
LONG_AGO = DensityMap.PATIENCE + timedelta(seconds=1)
OPTIONS = ReportOptions(view="map")


def reports_of(study: Study) -> list[WindowReport]:
    home = study.indicators.get(slug="home")
    return selectors.indicator_reports(home, maps.windows_of_scale(home))


def frame_of(report: WindowReport, scale: Any, options: ReportOptions = OPTIONS) -> dict[str, Any]:
    return maps.map_frame(report, names=ZONES, scale=scale, options=options)


def shown(client: Client, slug: str = "home", **query: str) -> str:
    return page(client, "indicator", slug, **query)


def signed_area(ring: Any) -> float:
    x, y = ring[:, 0], ring[:, 1]
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2


def test_shapes_are_in_metres_and_a_hole_turns_the_other_way(mapped) -> None:
    shapes = area_shapes(mapped.area)
    assert shapes.names == list(ZONES)
    outer, hole = shapes.zones[0].rings
    # A hundredth of a degree: 1,112 m to the north, and 750 m to the east in Belfort.
    assert signed_area(outer) == pytest.approx(1112 * 750, rel=0.01)
    assert signed_area(hole) == pytest.approx(-signed_area(outer) / 4, rel=0.01)
    west, south, east, north = shapes.bounds
    assert (east - west, north - south) == (pytest.approx(1500, rel=0.01), pytest.approx(2224, rel=0.01))
    assert shapes.to_json()["zones"][0]["rings"][0] == shapes.zones[0].rings[0].ravel().tolist()


def ring_of(x: float, side: float) -> Any:
    return np.array([(x, x), (x + side, x), (x + side, x + side), (x, x + side), (x, x)], np.float64)


@pytest.mark.parametrize("is_flipped", [False, True])
def test_rings_are_wound_by_how_they_are_nested(is_flipped) -> None:
    island, lake, islet, apart = ring_of(0, 10), ring_of(2, 6), ring_of(4, 2), ring_of(20, 3)
    rings = [np.flip(ring, axis=0) if is_flipped else ring for ring in (lake, island, apart, islet)]
    assert [signed_area(ring) for ring in wound(rings)] == [-36, 100, 9, 4]


def test_an_indicator_of_zones_has_a_map_and_others_have_none(reader, mapped) -> None:
    assert maps.zones_of(mapped.indicators.get(slug="home")) == list(ZONES[:3])
    assert maps.zones_of(mapped.indicators.get(slug="gender")) == []
    # mostly other categories, or one zone alone
    for number, categories in enumerate([(*ZONES[:2], "a", "b"), (ZONES[0], "a")]):
        home = factory.indicator("home", *categories)
        study = factory.create(home, area=map_factory.area(), slug=f"other-{number}")
        assert maps.zones_of(study.indicators.get()) == []
    plain = factory.published(HOME, slug="plain")  # without shapes
    assert maps.zones_of(plain.indicators.get()) == []
    html = reader.get(reverse("reports:indicator", args=["plain", "home"]), {"view": "map"}).content.decode()
    assert 'data-figure="figure"' in html  # the chart takes its place
    assert ">Map</a>" not in html


def test_a_frame_has_the_class_and_the_numbers_of_each_zone_on_one_scale(mapped) -> None:
    reports = reports_of(mapped)
    windows = [(report.window.first_day, report.window.last_day) for report in reports]
    assert windows == [(1, 1), (2, 2), (3, 3), (4, 4), (1, 4)]
    scale = maps.map_scale(reports, options=OPTIONS)
    for report in reports:
        (panel,) = frame_of(report, scale)["panels"]
        for place, estimate in enumerate(report.estimates[:3]):
            assert panel["classes"][place] == scale.class_of(100 * estimate.frequency)
            share, interval = formats.percent(estimate.frequency), estimates_texts.share_range(estimate)
            assert panel["texts"][place] == f"{ZONES[place]}\n{share} ({interval})"
        assert panel["classes"][3] == NOT_ASKED
        assert panel["texts"][3] == f"{ZONES[3]}\nnot a category of this indicator"
    for measure, factor in (("frequency", 100), ("visitors", 1)):
        scale = maps.map_scale(reports, options=ReportOptions(measure=measure))
        values = [factor * getattr(each, measure) for report in reports for each in report.estimates]
        assert (scale.low, scale.high) == pytest.approx((min(values), max(values)))


def test_uncertainty_is_half_of_the_interval(mapped) -> None:
    reports, options = reports_of(mapped), ReportOptions(view="map", layer="uncertainty")
    scale = maps.map_scale(reports, options=options)
    (panel,) = frame_of(reports[0], scale, options)["panels"]
    halves = [(e.ci_high - e.ci_low) * 50 for report in reports for e in report.estimates]
    assert panel["classes"][0] == scale.class_of(halves[0])
    assert panel["texts"][0].endswith(f"\n±{formats.points(halves[0] / 100)}")
    assert (scale.low, scale.high) == pytest.approx((min(halves), max(halves)))


def test_a_day_that_is_not_to_be_read_is_hatched_and_says_why(mapped) -> None:
    DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
    reports = reports_of(mapped)
    scale = maps.map_scale(reports, options=OPTIONS)
    (panel,) = frame_of(reports[1], scale)["panels"]
    assert (panel["blank"], panel["classes"]) == ("\u00d7 outage", [NOT_READ] * 3 + [NOT_ASKED])
    assert "\u00d7 outage" in panel["texts"][0]
    # unreliable values set no bounds
    assert scale == maps.map_scale([reports[0], *reports[2:]], options=OPTIONS)


def test_small_zones_have_their_own_class_and_entry_of_the_legend(reader, mapped) -> None:
    hidden = "hidden (<%s visitors, or would reveal such a figure)"
    assert "would reveal" not in shown(reader, view="map")
    Study.objects.update(small_category=700)
    mapped.refresh_from_db()
    report = window_report(mapped.indicators.get(slug="home"), WHOLE)
    assert [each.is_hidden for each in report.estimates] == [False, True, True, True]
    (panel,) = data_of(html := shown(reader, view="map"), "map-data")["frame"]["panels"]
    assert panel["classes"][1:] == [HIDDEN, HIDDEN, NOT_ASKED]
    words = [formats.reason_words(each) for each in report.estimates[1:3]]
    assert panel["texts"][1:3] == [f"{ZONES[1]}\n{words[0]}", f"{ZONES[2]}\n{words[1]}"]
    assert all(each.startswith("<") for each in words)
    assert escape(hidden % 700) in html
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    drawn = _legend(maps.legend(scale, mapped, options=OPTIONS), panel["classes"], area_shapes(mapped.area))
    assert hidden % 700 in [each.get_label() for each in drawn]


def test_a_map_without_values_has_no_classes_in_its_legend(reader, mapped) -> None:
    Study.objects.update(small_cell=1_000_000)
    mapped.refresh_from_db()
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    assert maps.legend(scale, mapped, options=OPTIONS) == []
    report = replace(reports_of(mapped)[0], status=Status.OK)
    others = tuple(each._replace(status=Status.NOT_RELIABLE) for each in report.estimates[:3])
    known = report.estimates[3]._replace(status=Status.OK, frequency=0.3, consistent=0.3)
    of_no_zone = replace(report, estimates=(*others, known))  # a value that no zone has
    assert maps.map_scale([of_no_zone], options=OPTIONS).is_empty


def test_an_interval_below_zero_is_explained(reader, mapped) -> None:
    report = window_report(mapped.indicators.get(slug="home"), WHOLE)
    assert estimates_texts.below_zero_words(report) == ""
    low = report.estimates[2]._replace(frequency=-0.05, ci_low=-0.092, ci_high=-0.02)
    report = replace(report, estimates=(*report.estimates[:2], low, report.estimates[3]))
    assert "misses the true share" in estimates_texts.below_zero_words(report)
    (panel,) = frame_of(report, maps.map_scale([report], options=OPTIONS))["panels"]
    assert panel["texts"][2].endswith("(\u22129.2 to \u22122.0%: most likely close to zero)")


def test_page_has_map_table_legend_and_what_is_no_zone(reader, mapped) -> None:
    html = shown(reader, view="map")
    document = data_of(html, "map-data")
    report = selectors.window_report(mapped.indicators.get(slug="home"), Window(1, 4))
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    assert document["frame"] == frame_of(report, scale)
    assert document["shapes"] == area_shapes(mapped.area).to_json()
    rest = report.estimates[3]
    text = text_of(html)
    for part in (
        *(row.text for row in maps.legend(scale, mapped, options=OPTIONS)),
        f"Not on the map NR: {formats.percent(rest.consistent)} {estimates_texts.share_range(rest)}",
        "Data table",
        "values range from " + maps.bounds_words(scale, options=OPTIONS),
    ):
        assert part in text
    assert (Markup(html).refused, "chart.js" in html) == ([], False)


def test_days_are_those_of_the_page_and_in_order_and_without_a_map_not_found(reader, client, mapped) -> None:
    address = reverse("reports:map_days", args=["fair-2024", "home"])
    html = shown(reader, view="map", measure="visitors")
    assert f'data-days="{address}?view=map&amp;measure=visitors"' in html
    frames = reader.get(address, {"view": "map", "measure": "visitors"}).json()["frames"]
    dates = ("2024-05-30", "2024-05-31", "2024-06-01", "2024-06-02")
    days = [f"from={day}&to={day}&view=map&measure=visitors" for day in dates]
    assert [frame["query"] for frame in frames] == days
    assert data_of(shown(reader, **QueryDict(days[2]).dict()), "map-data")["frame"] == frames[2]
    for slug in ("gender", "nothing"):
        assert reader.get(reverse("reports:map_days", args=["fair-2024", slug])).status_code == 404
    assert client.get(address).status_code == 302  # strangers see none


def test_a_shared_map_is_of_its_window_alone(client, mapped, analyst) -> None:
    home = mapped.indicators.get(slug="home")
    query = "from=2024-05-31&to=2024-06-01&view=map"
    _, text = access.create_link(home, Window(2, 3), query=query, days=30, note="", password="", by=analyst)
    html = client.get(f"/shared/{text}/").content.decode()
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    assert data_of(html, "map-data")["frame"] == frame_of(selectors.window_report(home, Window(2, 3)), scale)
    assert "js/map.js" in html
    assert "data-days" not in html  # other days are not shared
    assert "data-zoom" in html


def scale_for(*values: float) -> Any:
    return fixed_scale(np.array(values, np.float64))


def test_classes_are_few_round_and_where_the_values_are() -> None:
    for values, breaks in (
        ((-3.0, 4.0, 12.0, 38.0), (10.0, 20.0, 30.0)),  # even: equal round classes from zero
        # a round step that is a little too small is better than one twice as large
        ((-10.2, 11.6, 34.7, 51.3), (10.0, 20.0, 30.0, 40.0)),
        # skewed: classes that grow; the median is distinguished from the largest
        ((*range(1, 40), 900.0), (5.0, 20.0, 100.0, 500.0)),
    ):
        assert scale_for(*values).breaks == breaks


@pytest.mark.parametrize(
    ("values", "quantile", "equal"),
    [
        ((np.nan, 1.23, 2.34, 3.45, 4.56, 9.99), (2.0, 3.0, 4.0, 9.0), (2.98, 4.73, 6.49, 8.24)),
        ((0, 0, 0, 0, 0, 0, 3, 4, 5, 6), (3.0, 5.0), (1.2, 2.4, 3.6, 4.8)),  # ties stay together
        ((0, 50), (50.0,), (10.0, 20.0, 30.0, 40.0)),  # few zones
        ((-4.0, -2.0, 0.5, 1.2, 6.0), (-2.0, 0.0, 1.0, 6.0), (-2.0, 0.0, 2.0, 4.0)),
        ((7.1, 7.1, 7.1), (), ()),
        ((np.nan,), (), ()),
        ((), (), ()),
    ],
)
def test_quantiles_hold_as_many_values_each_and_equal_classes_are_as_wide(values, quantile, equal) -> None:
    found = [SCALES[name](np.array(values, np.float64)).breaks for name in ("quantile", "equal")]
    assert found == [quantile, equal]


def test_classes_of_an_address_follow_the_zones_that_are_shown(reader, mapped) -> None:
    mapped.small_category = 250  # hides zones
    mapped.save()
    options, reports = ReportOptions(view="map", classes="quantile"), reports_of(mapped)
    zones = [each for report in reports for each in report.estimates[:3]]
    shares = [100 * each.consistent for each in zones if each.status == Status.OK]
    assert 0 < len(shares) < len(zones)
    scale = maps.map_scale(reports, options=options)
    assert (scale.low, scale.high) == pytest.approx((min(shares), max(shares)))
    html = shown(reader, view="map", classes="quantile")
    assert data_of(html, "map-data")["frame"] == frame_of(reports[-1], scale, options)
    text = unescape(text_of(html))
    for part in (
        *(row.text for row in maps.legend(scale, mapped, options=options)),
        maps.classes_words(options),
    ):
        assert part in text


def test_a_scale_has_words_and_reads_no_more_than_numbers() -> None:
    scale = scale_for(-3.0, 4.0, 12.0, 38.0)
    assert (scale.low, scale.high) == (-3.0, 38.0)
    assert scale.labels(unit="%") == ["under 10%", "10 to 20%", "20 to 30%", "30% or more"]
    scale = scale_for(np.nan, 1.0, 10.0)
    assert scale.low == 1.0
    assert scale.classes(np.array([np.nan, 10.0])).tolist() == [NOT_READ, len(scale.breaks)]
    scale = scale_for(12.1, 12.4, 12.9, 13.3)
    assert 12.1 < scale.breaks[0] <= scale.breaks[-1] < 13.3
    assert len(scale.breaks) + 1 == 5
    assert scale_for().labels() == [] and maps.bounds_words(scale_for(), options=ESTIMATE) == ""
    for values in ((0.0,), (5.0, 5.0), (-2.0, -1.0)):  # without a difference there is one class
        scale = scale_for(*values)
        assert scale.labels() == ["all values"]
        assert set(scale.classes(np.array(values))) <= {0}


@given(st.lists(st.floats(min_value=-1e6, max_value=1e9).map(lambda value: round(value, 3)), min_size=1))
def test_every_value_has_a_class_and_order_is_kept(values) -> None:
    scale = fixed_scale(np.array(values))
    assert len(scale.breaks) + 1 <= MAX_CLASSES
    assert list(scale.breaks) == sorted(set(scale.breaks))
    assert all(scale.low < each <= scale.high or each > 0 for each in scale.breaks)
    classes = scale.classes(np.array(sorted(values)))
    assert (np.diff(classes) >= 0).all()
    assert [scale.class_of(value) for value in sorted(values)] == classes.tolist()
    assert len(set(scale.labels())) == len(scale.breaks) + 1
    low, high = min(values), max(values)
    if 0 < low < high:
        assert scale.class_of(low) < scale.class_of(high) == len(scale.breaks)


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr("reports.maps.actions.N_REPLICATES", 20)
    monkeypatch.setattr("reports.maps.actions.send_on_commit", lambda _task, pk: found.append(pk))
    return found


@pytest.fixture
def located(sent) -> Study:
    return map_factory.create_located()


def windows_of(study: Study, *windows: Window) -> list[Any]:
    return locations.location_windows(study, windows or (WHOLE,))


# --- counts and computed maps ---------------------------------------------------------------------------
def ask(study: Study, *windows: Window) -> int:
    return densities.ask_for_maps(study, windows or (WHOLE,))


def kept_map(study: Study) -> DensityMap | None:
    (kept,) = densities.kept_maps(study.area, windows_of(study))
    return kept


def publish_more(study: Study) -> None:
    late = factory.crowd(study, n=200, seed=2)
    places = map_factory.true_places(study, late)
    map_factory.publish_located(study, late, places=places, key=bytes(15) + b"k")


def test_places_of_windows_are_counted_once_per_person(located) -> None:
    windows = locations.windows_with_maps(located, locations.location_spec(located))
    found = {each.window: each for each in windows_of(located, *windows)}
    assert len(found) == 10
    for window, each in found.items():
        assert each.n_reports == each.n_visitors == each.counts.sum()
        assert (each.counts.shape, each.status) == (GRID.shape, Status.OK), window
    assert found[WHOLE].n_visitors == 3000
    # Seven of ten are in one square, and the noise is two or three squares wide.
    row, column = np.unravel_index(np.argmax(found[WHOLE].counts), GRID.shape)
    assert max(abs(row - 10), abs(column - 6)) <= 1


def test_a_capped_study_has_single_days_and_one_without_places_has_nothing(reader, sent) -> None:
    plain = factory.create(HOME, slug="plain")
    assert locations.location_spec(plain) is None
    with pytest.raises(LocationTally.DoesNotExist):
        windows_of(plain)
    for name in ("maps", "maps_days", "maps_state"):
        assert reader.get(reverse(f"reports:{name}", args=["plain"])).status_code == 404
    study = map_factory.create_located(location=CAPPED)
    spec = locations.location_spec(study)
    assert locations.windows_with_maps(study, spec) == [Window(day, day) for day in range(1, 5)]
    assert get(reader, "maps").context["window_title"] == "Thu 30 May 2024"
    answer = get(reader, "maps", **{"from": "2024-05-30", "to": "2024-05-31"})
    assert (answer.status_code, "a place on only 2 of" in answer.content.decode()) == (400, True)


def test_small_windows_and_outages_are_told_apart(located) -> None:
    DayNote.objects.create(study=located, day=2, kind="outage", text="mast down", by="adam")
    located.small_cell = 1700
    first, second, whole = windows_of(located, Window(1, 1), Window(2, 2), WHOLE)
    assert (first.n_visitors, first.n_reports, first.counts.any()) == (None, None, False)
    statuses = [each.status for each in (first, second, whole)]
    assert statuses == [Status.SUPPRESSED, Status.SUPPRESSED, Status.OK]  # the rule comes first
    located.small_cell = 0
    assert windows_of(located, Window(2, 2))[0].status == Status.OUTAGE
    located.small_cell = 100_000
    assert ask(located) == 0  # nothing is computed of what is not shown
    assert not DensityMap.objects.exists()


def test_a_map_is_asked_for_once_and_computed_from_the_counts(located, sent) -> None:
    assert [ask(located), ask(located)] == [1, 0]
    row = DensityMap.objects.get()
    assert (sent, row.state) == ([row.pk], "waiting")
    tasks.compute_density(row.pk)
    row.refresh_from_db()
    assert (row.state, row.stage) == ("done", densities.N_STAGES)
    (found,) = windows_of(located)
    transition = Transition(GRID, epsilon_per_m=float(found.spec.precision.sampled))
    expected = deconvolve(found.counts, transition=transition, land=located.area.grid_map.land)
    density, std_error, low, high = row.get_layers(GRID.shape)
    assert density == pytest.approx(expected.density, rel=1e-5, abs=1e-5)
    assert density.sum() == pytest.approx(3000, rel=1e-4)
    assert (low <= high).all() and (std_error >= 0).all()
    assert row.figures["steps"] == expected.steps
    assert row.figures["chi_square_low"] < row.figures["chi_square_high"]
    zones, grid_zones = row.figures["zones"], located.area.grid_map.zones
    assert [zone["noisy"] for zone in zones] == [int(found.counts[grid_zones == i].sum()) for i in range(4)]
    assert all(zone["ci_low"] <= zone["count"] <= zone["ci_high"] for zone in zones)
    assert ask(located) == 0
    first = DensityMap.objects.values().get()
    tasks.compute_density(row.pk)  # computing twice changes nothing
    assert DensityMap.objects.values().get() == first
    tasks.compute_density(row.pk + 1)  # gone meanwhile
    with pytest.raises(IntegrityError, match="density_map_done_has_layers"):
        DensityMap.objects.create(study=located, first_day=1, last_day=1, fingerprint="x", state="done")


def test_a_map_of_what_was_published_before_is_out_of_date(located, sent, monkeypatch) -> None:
    """A slow worker must not pass its map off as a newer one: that would never be computed."""
    ask(located)
    row, computed = DensityMap.objects.get(), densities._computed

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        publish_more(located)
        assert ask(located) == 1
        return computed(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(densities, "_computed", meanwhile)
        tasks.compute_density(row.pk)
    assert sent == [row.pk] * 2
    tasks.compute_density(row.pk)
    assert kept_map(located).figures["n_reports"] == 3200
    publish_more(located)
    assert (kept_map(located), ask(located)) == (None, 1)


def test_what_failed_or_was_lost_is_asked_for_again(located, monkeypatch) -> None:
    ask(located)
    monkeypatch.setattr(densities, "_computed", lambda *_args, **_kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tasks.compute_density(DensityMap.objects.get().pk)
    assert DensityMap.objects.get().state == "failed"
    assert ask(located) == 1
    for change, asked in (({"state": "running"}, 0), ({"changed_at": timezone.now() - LONG_AGO}, 1)):
        DensityMap.objects.update(**change)
        assert ask(located) == asked


def post(client: Any, data: dict[str, str] | None = None, **headers: Any) -> Any:
    address = reverse("reports:maps_compute", args=["fair-2024"]) + "?from=2024-05-30&to=2024-06-02"
    return client.post(address, data or {}, **headers)


def panels_of(html: str) -> list[dict[str, Any]]:
    return data_of(html, "map-data")["frame"]["panels"]


def compute(client: Any, sent: list[int]) -> DensityMap:
    post(client)
    tasks.compute_density(sent[-1])
    return DensityMap.objects.get(pk=sent[-1])


def scale_of(study: Study, options: ReportOptions = ESTIMATE) -> Any:
    windows = [*(Window(day, day) for day in range(1, 5)), WHOLE]
    return maps_density.density_scale(windows_of(study, *windows), options=options)


def classes(scale: Any, values: np.ndarray) -> list[int]:
    return np.where(values > scale.breaks[0] / 10, scale.classes(values), NOT_ASKED).tolist()


def test_before_a_map_is_computed_the_noisy_one_is_shown(reader, client, located, sent) -> None:
    html = page(reader, "maps")
    noisy, density = panels_of(html)
    counts = windows_of(located)[0].counts.ravel()
    assert noisy["numbers"][0] == counts.tolist()
    assert noisy["classes"] == classes(scale_of(located), counts.astype(float))
    assert set(noisy["classes"]) > {NOT_ASKED}
    assert (set(density["classes"]), density["blank"]) == ({NOT_ASKED}, "not computed yet")
    assert 'hx-trigger="load, submit"' in html  # the page asks for it
    said = "Counts by zone will appear once the deconvolved (noise-corrected) map has been computed."
    assert (said in html, Markup(html).refused) == (True, [])
    assert not DensityMap.objects.exists()  # reading changes nothing
    assert reverse("reports:maps", args=["fair-2024"]) in Markup(page(reader, "study")).links
    for name in ("maps", "maps_days", "maps_state"):
        assert get(client, name).status_code == 302  # strangers neither see nor ask
    assert post(client).status_code == 302
    assert sent == []
    for address in ("maps/", "maps/days.json", "home/?view=map"):
        answer = reader.get(f"/studies/fair-2024/{address}", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip", address


def test_asking_shows_progress_until_the_page_is_loaded_again(reader, located, sent) -> None:
    fragment = post(reader, headers={"HX-Request": "true"}).content.decode()
    assert ('hx-trigger="every 2s"' in fragment, "Waiting for a worker." in fragment) == (True, True)
    with CaptureQueriesContext(connection) as queries:
        assert "Waiting for a worker." in page(reader, "maps_state", **ALL_DAYS)
    assert not [query for query in queries if "locationtally" in query["sql"]]  # tens of megabytes
    DensityMap.objects.update(state="running", stage=2)
    answer = get(reader, "maps_state", **ALL_DAYS)
    assert "Testing how well" in answer.content.decode()
    assert ('value="2"' in answer.content.decode(), "HX-Refresh" in answer.headers) == (True, False)
    tasks.compute_density(sent[0])
    assert get(reader, "maps_state", **ALL_DAYS).headers["HX-Refresh"] == "true"
    assert post(reader, headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"  # a fast worker


def test_without_scripts_the_form_leads_back_and_what_failed_is_tried_again(reader, located, sent) -> None:
    address = reverse("reports:maps", args=["fair-2024"]) + "?from=2024-05-30&to=2024-06-02"
    assert post(reader).headers["Location"] == address
    assert "it will appear here automatically" in page(reader, "maps").lower()
    DensityMap.objects.update(state="failed")
    answer, html = get(reader, "maps_state", **ALL_DAYS), page(reader, "maps")
    for text in (html, answer.content.decode()):
        assert "could not be computed" in text
    assert "HX-Refresh" not in answer.headers
    assert 'hx-trigger="load' not in html  # by hand only: it may fail again
    DensityMap.objects.update(state="running", changed_at=timezone.now() - LONG_AGO)
    html = page(reader, "maps")  # else it would wait for a worker that is gone permanently
    assert ('role="status"' in html, 'hx-trigger="load, submit"' in html) == (False, True)


def test_a_computed_map_is_shown_beside_the_noisy_one_with_the_same_scale(reader, located, sent) -> None:
    kept = compute(reader, sent)
    html = page(reader, "maps")
    _, density = panels_of(html)
    values, _, low, high = kept.get_layers(GRID.shape).reshape(4, -1).astype(float)
    assert density["classes"] == classes(scale_of(located), values)
    assert density["numbers"][0] == pytest.approx(values, abs=0.5)
    assert density["numbers"][2] == pytest.approx(high, abs=0.5)
    uncertain = panels_of(page(reader, "maps", layer="uncertainty"))[1]["classes"]
    assert uncertain == classes(scale_of(located, ReportOptions(layer="uncertainty")), (high - low) / 2)
    text = text_of(html)
    assert texts.goodness_words(kept) in text
    for name, row in zip(ZONES, kept.figures["zones"], strict=True):
        shown = f"{formats.number(row['count'])} {formats.number_range(row['ci_low'], row['ci_high'])}"
        line = f"{name} {shown} {formats.number(row['noisy'])}"
        assert line.replace("<", "&lt;").replace(">", "&gt;") in text
    # Land has no colour where no one can be; noise goes anywhere.
    water = replace(located.area.grid_map, land=np.zeros(GRID.shape, np.bool_))
    shown = {"grid_map": water, "scale": scale_of(located), "options": ESTIMATE}
    noisy, density = maps_density.density_frame(windows_of(located)[0], kept, **shown)["panels"]
    assert set(density["classes"]) == {NOT_ASKED} != set(noisy["classes"])


def test_days_have_the_maps_that_are_there(reader, located, sent) -> None:
    DayNote.objects.create(study=located, day=3, kind="outage", text="mast down", by="adam")
    post(reader, {"days": "all"})
    assert len(sent) == 3  # nothing is computed of an outage
    tasks.compute_density(sent[0])
    frames = get(reader, "maps_days").json()["frames"]
    days = ("2024-05-30", "2024-05-31", "2024-06-01", "2024-06-02")
    assert [frame["query"].split("&")[0] for frame in frames] == [f"from={day}" for day in days]
    blanks = [[panel["blank"] for panel in frame["panels"]] for frame in frames]
    assert blanks == [["", ""], ["", "not computed yet"], ["\u00d7 outage"] * 2, ["", "not computed yet"]]
    assert set(frames[2]["panels"][0]["classes"]) == {NOT_ASKED}  # its figures are unreliable
    assert panels_of(page(reader, "maps", **{"from": "2024-05-30"})) == frames[0]["panels"]


def test_the_better_view_is_the_one_with_shorter_intervals(reader, located, sent) -> None:
    kept = compute(reader, sent)
    *rows, outside = maps_density.zone_rows(list(ZONES), kept)
    assert outside.name == "Outside all zones"
    assert sum(row.noisy for row in [*rows, outside]) == kept.figures["n_reports"]
    report = window_report(located.indicators.get(slug="home"), WHOLE)
    by_places = maps_density.half_width_of_rows(rows)
    by_zones = maps_density.half_width_of_report(report, zones=ZONES)
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in kept.figures["zones"]]
    assert by_places == pytest.approx(sum(halves) / 4)
    shares = [(each.ci_high - each.ci_low) / 2 for each in report.estimates[:3]]
    assert by_zones == pytest.approx(3000 * sum(shares) / 3)
    places, zones = "reported places are", "the indicator “Home” is"
    text = texts.better_view_words(rows, [report], zones=ZONES)
    for part in (places if by_places <= by_zones else zones, *map(formats.number, (by_places, by_zones))):
        assert part in text
    assert text_of(page(reader, "maps")).count(text.split(":")[0]) == 1

    for width, better in ((1, places), (3000, zones)):
        shown = []
        for row in rows:
            low = row.estimate.visitors
            changed = row.estimate._replace(visitors_ci_low=low, visitors_ci_high=low + width)
            shown.append(replace(row, estimate=changed))
        assert better in texts.better_view_words(shown, [report], zones=ZONES)
    assert "No indicator by zone has figures" in texts.better_view_words(rows, [], zones=ZONES)


def test_an_indicator_that_is_not_reliable_is_compared_too(reader, sent) -> None:
    map_factory.create_located(epsilon="0.2", n=500)
    compute(reader, sent)
    text = text_of(page(reader, "maps"))
    assert ("reported places are more accurate" in text, "for “Home”" in text) == (True, True)


def test_goodness_says_so_when_the_density_does_not_fit_or_cannot_be_tested() -> None:
    figures = {"chi_square": 1.2, "chi_square_low": 0.8, "chi_square_high": 1.3, "n_blocks": 9, "steps": 7}
    for changes, said in (
        ({}, "fits the reports as well as the noise allows"),
        ({"chi_square": 1.31}, "does not fit the reports"),
        ({"n_blocks": 4}, "too few reports"),
    ):
        assert said in texts.goodness_words(DensityMap(figures=figures | changes))


def test_what_is_hidden_or_missing_says_why(reader, located) -> None:
    Study.objects.update(small_cell=100_000)
    html = page(reader, "maps")
    assert ("suppressed" in html, "map-data" in html) == (True, False)
    answer = get(reader, "maps", **{"from": "2030-01-01"})
    assert (answer.status_code, "These days are outside the study" in answer.content.decode()) == (400, True)
    assert post(reader).status_code == 302
    assert get(reader, "maps_state", **{"from": "nonsense"}).status_code == 404
