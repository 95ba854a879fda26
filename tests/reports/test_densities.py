"""Reported places by window, and the deconvolved maps that a worker computes of them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError
from django.utils import timezone

from ldp.geo.deconvolution import deconvolve
from ldp.geo.transition import Transition
from reports import locations, tasks
from reports.models import DayNote, DensityMap, LocationTally, Study
from reports.selectors import Window
from reports.services import densities
from reports.status import Status
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import GRID

pytestmark = pytest.mark.django_db


@pytest.fixture
def located() -> Study:
    return map_factory.create_located()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any) -> Any:
    """Ask for maps; returns (how many were asked for, keys that were sent to the workers)."""
    sent: list[int] = []
    monkeypatch.setattr(tasks.compute_density, "delay", sent.append)

    def ask(study: Study, *windows: Window) -> tuple[int, list[int]]:
        before = len(sent)
        with django_capture_on_commit_callbacks(execute=True):
            n = densities.ask_for_maps(study, windows)
        return n, sent[before:]

    return ask


def test_places_of_windows_are_counted_once_per_person(located: Study) -> None:
    windows = locations.windows_with_maps(located, locations.location_spec(located))
    found = {each.window: each for each in locations.location_windows(located, windows)}
    assert len(found) == 10
    for window, each in found.items():
        assert each.counts.shape == GRID.shape
        assert each.n_reports == each.n_visitors == each.counts.sum()
        assert each.status == Status.OK, window
    whole = found[Window(1, 4)]
    assert whole.n_visitors == 3000
    # Nine of ten stand in one square, and the noise is two or three squares wide.
    row, column = np.unravel_index(np.argmax(whole.counts), GRID.shape)
    assert abs(row - 10) <= 1
    assert abs(column - 6) <= 1


def test_a_capped_study_has_single_days_only() -> None:
    study = factory.create(area=map_factory.area(), location=_capped(2))
    spec = locations.location_spec(study)
    assert locations.windows_with_maps(study, spec) == [Window(day, day) for day in range(1, 5)]


def _capped(max_values: int) -> Any:
    from dataclasses import replace

    return replace(map_factory.LOCATION, max_values=max_values)


def test_a_study_without_places_has_no_spec() -> None:
    study = factory.create()
    assert locations.location_spec(study) is None
    with pytest.raises(LocationTally.DoesNotExist):
        locations.location_windows(study, [Window(1, 1)])


def test_small_windows_and_outages_are_told_apart(located: Study) -> None:
    DayNote.objects.create(study=located, day=2, kind="outage", text="mast down", by="adam")
    Study.objects.update(small_cell=1700)
    located.refresh_from_db()
    first, second, whole = locations.location_windows(located, [Window(1, 1), Window(2, 2), Window(1, 4)])
    assert (first.status, first.n_visitors, first.n_reports) == (Status.SUPPRESSED, None, None)
    assert not first.counts.any()
    assert second.status == Status.SUPPRESSED  # the rule comes first
    assert whole.status == Status.OK
    Study.objects.update(small_cell=0)
    located.refresh_from_db()
    assert locations.location_windows(located, [Window(2, 2)])[0].status == Status.OUTAGE


def test_a_map_is_asked_for_once_and_computed_from_the_counts(located: Study, asked: Any) -> None:
    window = Window(1, 4)
    n, sent = asked(located, window)
    row = DensityMap.objects.get()
    assert (n, sent, row.state) == (1, [row.pk], "waiting")
    assert asked(located, window) == (0, [])
    tasks.compute_density(row.pk)
    row.refresh_from_db()
    assert (row.state, row.stage) == ("done", densities.N_STAGES)
    (found,) = locations.location_windows(located, [window])
    transition = Transition(GRID, epsilon_per_m=float(found.spec.precision.sampled))
    expected = deconvolve(found.counts, transition=transition, land=located.area.grid_map.land)
    density, std_error, low, high = row.get_layers(GRID.shape)
    assert density == pytest.approx(expected.density, rel=1e-5, abs=1e-5)
    assert density.sum() == pytest.approx(3000, rel=1e-4)
    assert (low <= high).all()
    assert (std_error >= 0).all()
    assert row.figures["steps"] == expected.steps
    assert row.figures["chi_square_low"] < row.figures["chi_square_high"]
    zones = row.figures["zones"]
    assert len(zones) == 4
    grid_zones = located.area.grid_map.zones
    assert [zone["noisy"] for zone in zones] == [int(found.counts[grid_zones == i].sum()) for i in range(4)]
    assert all(zone["ci_low"] <= zone["count"] <= zone["ci_high"] for zone in zones)
    assert asked(located, window) == (0, [])


def test_computing_twice_changes_nothing(located: Study, asked: Any) -> None:
    asked(located, Window(1, 1))
    row = DensityMap.objects.get()
    tasks.compute_density(row.pk)
    first = DensityMap.objects.values().get()
    tasks.compute_density(row.pk)
    assert DensityMap.objects.values().get() == first
    tasks.compute_density(row.pk + 1)  # gone meanwhile


def test_a_map_is_out_of_date_when_more_is_published(located: Study, asked: Any) -> None:
    asked(located, Window(1, 4))
    row = DensityMap.objects.get()
    tasks.compute_density(row.pk)
    assert _kept(located, Window(1, 4)) == [row]
    late = factory.crowd(located, n=200, seed=2)
    map_factory.publish_located(
        located, late, places=map_factory.true_places(located, late), key=bytes(15) + b"k"
    )
    assert _kept(located, Window(1, 4)) == [None]
    assert asked(located, Window(1, 4)) == (1, [row.pk])
    tasks.compute_density(row.pk)
    (kept,) = _kept(located, Window(1, 4))
    assert kept is not None
    assert kept.figures["n_reports"] == 3200


def test_a_slow_worker_does_not_pass_its_map_off_as_the_one_that_was_asked_for_since(
    located: Study, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next worker finds the map done, and nobody computes it."""
    window, computed = Window(1, 4), densities._computed
    asked(located, window)
    row = DensityMap.objects.get()

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        late = factory.crowd(located, n=200, seed=2)
        map_factory.publish_located(
            located, late, places=map_factory.true_places(located, late), key=bytes(15) + b"k"
        )
        assert asked(located, window) == (1, [row.pk])
        return computed(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(densities, "_computed", meanwhile)
        tasks.compute_density(row.pk)
    tasks.compute_density(row.pk)
    (kept,) = _kept(located, window)
    assert kept is not None
    assert kept.figures["n_reports"] == 3200


def _kept(study: Study, *windows: Window) -> list[DensityMap | None]:
    return densities.kept_maps(study.area, locations.location_windows(study, windows))


def test_what_failed_or_was_lost_is_asked_for_again(
    located: Study, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(located, Window(1, 1))
    row = DensityMap.objects.get()
    with monkeypatch.context() as patched:
        patched.setattr(densities, "_computed", lambda *_args, **_kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tasks.compute_density(row.pk)
    assert DensityMap.objects.get().state == "failed"
    assert asked(located, Window(1, 1))[0] == 1
    DensityMap.objects.update(state="running")
    assert asked(located, Window(1, 1))[0] == 0
    DensityMap.objects.update(changed_at=timezone.now() - densities.PATIENCE - timedelta(seconds=1))
    assert asked(located, Window(1, 1))[0] == 1


def test_nothing_is_computed_of_what_is_not_shown(located: Study, asked: Any) -> None:
    Study.objects.update(small_cell=100_000)
    located.refresh_from_db()
    assert asked(located, Window(1, 4)) == (0, [])
    assert not DensityMap.objects.exists()


def test_a_done_map_has_layers(located: Study) -> None:
    with pytest.raises(IntegrityError, match="density_map_done_has_layers"):
        DensityMap.objects.create(study=located, first_day=1, last_day=1, fingerprint="x", state="done")
