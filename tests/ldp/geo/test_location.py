"""Reports of locations: bits of the kernel against plain Python, the law at a fixed key, and the rules."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features
from numba import njit
from numpy.typing import NDArray

from ldp import NO_ANSWER, KeyedPrf, KeyedStream, PlanError, choose_days
from ldp.errors import InvalidBudgetError, InvalidGridError
from ldp.geo import sampling
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.kernels.entropy import BUFFER_BLOCKS, CHOOSE_LOCATION_DAYS, LOCATION
from ldp.keyed.noise.locations import LocationSanitiser
from tests.ldp.exact import FixedPrf, refuses

KEY = bytes(range(16))
GRID = Grid(x0_m=-5000, y0_m=2000, step_m=100, n_x=90, n_y=70)
SPEC = LocationSpec(level=Fraction(4, 3), radius_m=Fraction(200), grid=GRID)
FULL = 2**64 - 1

WordsOf = Callable[[int], tuple[int, int]]


def sanitiser(spec=SPEC, *, prf=None, version=1) -> LocationSanitiser:
    return LocationSanitiser(spec, prf or KeyedPrf(KEY), version)


def people(n: int, *, grid: Grid = GRID) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    stream = KeyedStream(KEY)
    return stream.words(n), stream.uniform_int(n, 0, grid.n_cells).astype(np.uint16)


def reference_radius(first: int, second: int, zeros: int) -> float:
    m, power = math.frexp(float(2 * first + 1) * float(2 * second + 1))
    if m < float.fromhex("0x1.6a09e667f3bcdp-1"):
        m, power = 2 * m, power - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11)))))
    return float(98 + zeros - power) * 0.6931471805599453 - 2.0 * s * series


def reference_direction(angle: int) -> tuple[float, float]:
    quadrant, offset = divmod(angle, 2**30)
    phi = float(2 * offset + 1 - 2**30) * (math.pi / 2**32)
    z = phi * phi
    tail = 1 / 5040 - z * (1 / 362880 - z * (1 / 39916800))
    sine = phi * (1.0 - z * (1 / 6 - z * (1 / 120 - z * tail)))
    tail = 1 / 720 - z * (1 / 40320 - z * (1 / 3628800 - z * (1 / 479001600)))
    cosine = 1.0 - z * (0.5 - z * (1 / 24 - z * tail))
    return [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quadrant]


def reference_shift(words_of: WordsOf, spec: LocationSpec) -> tuple[float, float]:
    first, second = words_of(0)
    angle = (first & 0xFFFF) << 16 | second & 0xFFFF
    numbers, zeros, counter = [first >> 16, second >> 16], 0, 0
    while min(numbers) < 2**32:
        counter += 1
        redrawn = words_of(counter)
        for which in (0, 1):
            if numbers[which] < 2**32:
                numbers[which] = redrawn[which] >> 16
                zeros += 16
    length = spec.precision.scale * reference_radius(numbers[0], numbers[1], zeros)
    east, north = reference_direction(angle)
    return length * east, length * north


def reference_report(words_of: WordsOf, place: int, spec: LocationSpec) -> int:
    grid = spec.grid
    east, north = reference_shift(words_of, spec)
    row, column = divmod(place, grid.n_x)
    to_row = min(max(math.floor(row + 0.5 + north), 0), grid.n_y - 1)
    to_column = min(max(math.floor(column + 0.5 + east), 0), grid.n_x - 1)
    return to_row * grid.n_x + to_column


def test_purposes_are_frozen() -> None:
    assert (LOCATION, CHOOSE_LOCATION_DAYS) == (9, 10)


def test_golden_reports() -> None:
    """Frozen: other reports of the same people would spend epsilon again."""
    pseudonyms = np.array([0, 1, 2**64 - 2, 2**63, 12345], np.uint64)
    places = np.array([0, 6299, 3150, 3150, NO_ANSWER], np.uint16)
    assert sanitiser().reports(pseudonyms, places).tolist() == [6, 6119, 3060, 3150, NO_ANSWER]
    east_m, north_m = sanitiser().shifts(pseudonyms, places)
    assert [value.hex() for value in east_m[:2]] == ["0x1.2bcd598870db2p+9", "0x1.05c2f74a29d8fp+7"]
    assert [value.hex() for value in north_m[:2]] == ["-0x1.c1cedff93b9c9p+8", "-0x1.66b9da746bc85p+7"]
    assert SPEC.precision.scale.hex() == "0x1.80004c3f0da47p+0"


@pytest.mark.parametrize(("n_x", "n_y", "version"), [(1, 300, 255), (255, 256, 1)])
def test_every_bit_of_the_noise_is_that_of_plain_python(n_x: int, n_y: int, version: int) -> None:
    grid = Grid(x0_m=0, y0_m=0, step_m=1000, n_x=n_x, n_y=n_y)
    spec = LocationSpec(level=Fraction(4, 3), radius_m=Fraction(4000), grid=grid)
    n = BUFFER_BLOCKS + 13
    pseudonyms, places = people(n, grid=spec.grid)
    prf = KeyedPrf(KEY)
    fields = {"purpose": 9, "indicator": 0, "plan_version": version}
    values = places.astype(np.uint32)
    words = [prf.words(pseudonyms, **fields, values=values, counter=c).tolist() for c in range(3)]
    shifts = [reference_shift(lambda c, i=i: words[c][i], spec) for i in range(n)]
    codes = [reference_report(lambda c, i=i: words[c][i], int(places[i]), spec) for i in range(n)]
    source = sanitiser(spec, version=version)
    assert np.array_equal(np.array(shifts).T * 1000, source.shifts(pseudonyms, places))
    assert np.array_equal(source.reports(pseudonyms, places), codes)


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        # Both numbers short twice, then all ones; the first one alone; the longest that is not short.
        ([(0xFFFF, 0), (0, 0xFFFF_FFFF), (FULL, FULL)], 64 * math.log(2)),
        ([(0x1234, FULL), (2**63, 0)], 17 * math.log(2)),
        ([(FULL, 0x1234), (0, 2**63)], 17 * math.log(2)),
        ([(2**48, 2**48)], 32 * math.log(2)),
        ([(2**48 - 2**16, FULL), (2**63, 0)], 17 * math.log(2)),
    ],
)
def test_short_numbers_are_drawn_again(again: list[tuple[int, int]], expected: float) -> None:
    prf = FixedPrf(lambda *_, counter, **__: again[min(counter, len(again) - 1)])
    pseudonyms, places = np.arange(3, dtype=np.uint64), np.full(3, 3000, np.uint16)
    east_m, north_m = sanitiser(prf=prf).shifts(pseudonyms, places)
    lengths = np.hypot(east_m, north_m) * float(SPEC.precision.sampled)
    assert lengths == pytest.approx(np.full(3, expected), rel=1e-9)
    east, north = reference_shift(lambda counter: again[counter], SPEC)
    assert (east_m[0], north_m[0]) == (east * 100, north * 100)
    code = reference_report(lambda counter: again[counter], 3000, SPEC)
    assert sanitiser(prf=prf).reports(pseudonyms, places).tolist() == [code] * 3


@pytest.mark.parametrize("number", [2**32, 2**32 + 1, 2**40 + 12345, 2**47 - 1, 2**47, 199_032_864_766_430])
@pytest.mark.parametrize("other", [2**32, 3 * 2**46 + 7, 2**48 - 1])
def test_radius_is_the_logarithm_within_its_stated_error(number: int, other: int) -> None:
    """For the whole step that each number stands for, from its lower to its upper end."""
    found = Decimal(sampling.radius(np.uint64(number), np.uint64(other), 0))
    for end in (0, 1):
        ideal = -(Decimal(number + end) * (other + end) / 2**96).ln()
        assert abs(found - ideal) <= sampling.RADIUS_ERROR
    middle = -(Decimal(2 * number + 1) * (2 * other + 1) / 2**98).ln()
    assert abs(found - middle) < Decimal("1.9e-11")


def test_direction_is_the_angle_within_its_stated_error() -> None:
    corners = [quadrant * 2**30 + k for quadrant in range(4) for k in (0, 1, 2**29 - 1, 2**29, 2**30 - 1)]
    angles = [*corners, *(KeyedStream(KEY).words(2000) >> np.uint64(32)).tolist()]
    for angle in angles:
        east, north = sampling.direction(np.uint64(angle))
        for end, most in ((0, sampling.ANGLE_ERROR), (1, sampling.ANGLE_ERROR), (0.5, 8e-12)):
            theta = -math.pi / 4 + 2 * math.pi * ((angle + end) / 2**32)
            assert math.hypot(east - math.cos(theta), north - math.sin(theta)) < most


def test_machine_code_fuses_nothing() -> None:
    fused = re.compile(r"vfn?m(add|sub)|\bfn?m(add|sub)|\bfml[as]\b")  # x86-64, and ARM
    # Compiled again: what comes from the cache cannot be read.
    kernel = njit(error_model="numpy")(sampling.noisy_codes.py_func)
    kernel(np.zeros(4, np.uint16), np.zeros(8, np.uint64), 3, 3, 1.0, np.zeros(4, np.uint16))
    assert not fused.search("".join(kernel.inspect_asm().values()))
    if "+fma" in get_host_cpu_features().flatten().split(","):
        allowed = njit(fastmath={"contract"})(lambda a, b, c: a * b + c)
        allowed(1.0, 2.0, 3.0)
        assert fused.search("".join(allowed.inspect_asm().values()))


def test_no_place_gives_no_answer() -> None:
    pseudonyms, places = people(1000)
    some = np.where(np.arange(1000) % 3 == 0, np.uint16(NO_ANSWER), places)
    found = sanitiser().reports(pseudonyms, some)
    assert (found[::3] == NO_ANSWER).all()
    kept = np.arange(1000) % 3 != 0
    assert np.array_equal(found[kept], sanitiser().reports(pseudonyms, places)[kept])
    short = FixedPrf(lambda *_, counter, **__: (counter << 63, FULL))
    nowhere = np.full(2, NO_ANSWER, np.uint16)
    assert (sanitiser(prf=short).reports(np.arange(2, dtype=np.uint64), nowhere) == NO_ANSWER).all()
    assert sanitiser().reports(np.empty(0, np.uint64), np.empty(0, np.uint16)).size == 0


def test_answer_days_are_so_many_and_independent_of_those_of_indicators() -> None:
    pseudonyms, _ = people(10_000)
    spec = LocationSpec(level=SPEC.level, radius_m=SPEC.radius_m, grid=GRID, max_values=2)
    days = sanitiser(spec).answer_days(pseudonyms, days=7)
    assert set(np.bitwise_count(days).tolist()) == {2}
    assert np.unique(days, return_counts=True)[1] == pytest.approx(np.full(21, 10_000 / 21), rel=0.25)
    ours = choose_days(pseudonyms, prf=KeyedPrf(KEY), days=7, max_values=2, indicator=0)
    assert abs((days == ours).mean() - 1 / 21) < 4 * math.sqrt(1 / 21 / 10_000)
    assert np.array_equal(days, sanitiser(spec, version=9).answer_days(pseudonyms, days=7))


@pytest.mark.parametrize("max_values", [None, 7, 60])
def test_without_a_cap_below_the_days_everybody_reports_on_all(max_values: int | None) -> None:
    spec = LocationSpec(level=SPEC.level, radius_m=SPEC.radius_m, grid=GRID, max_values=max_values)
    assert sanitiser(spec).answer_days(np.arange(3, dtype=np.uint64), days=7).tolist() == [127] * 3
    assert spec.values_per_person(7) == 7


def test_figures_of_a_spec_are_those_of_its_epsilon() -> None:
    """200 m and a level of 1: a mean of 400 m, 95% within 949 m (features.md)."""
    spec = LocationSpec(level=Fraction(1), radius_m=Fraction(200), grid=GRID)
    assert spec.epsilon_per_m == Fraction(1, 200)
    assert Fraction(spec.certified) <= Fraction(1, 200)
    assert float(spec.certified) == pytest.approx(1 / 200, rel=1e-12)
    assert (round(spec.law.mean_m), round(spec.law.quantile(0.95))) == (400, 949)
    assert Fraction(spec.loss_at(Fraction(200))) <= 1
    assert float(spec.loss_at(Fraction(100), n_places=7)) == pytest.approx(3.5, rel=1e-9)
    refuses("n_places >= 1 must hold", spec.loss_at, Fraction(1), n_places=0)


@pytest.mark.parametrize("max_values", [None, 3])
def test_a_spec_survives_json(max_values: int | None) -> None:
    spec = LocationSpec(level=Fraction(693, 500), radius_m=Fraction(601, 3), grid=GRID, max_values=max_values)
    data = spec.to_json()
    assert (data["level"], data["radius_m"]) == ("693/500", "601/3")
    assert LocationSpec.from_json(data) == spec


def test_bad_specs_are_refused() -> None:
    for change, error, message in (
        ({"level": "0/1"}, InvalidBudgetError, r"epsilon of one answer must be in \[0\.000001, 64\]"),
        ({"level": "x"}, PlanError, "locations must be an object as to_json writes it"),
        ({"radius_m": "1/2"}, PlanError, r"radius_m must be in \[1, 100000\], got 0\.5"),
        ({"radius_m": "100001/1"}, PlanError, r"radius_m must be in \[1, 100000\], got 100001"),
        ({"radius_m": "1/0"}, PlanError, "locations must be an object"),
        ({"max_values": 0}, PlanError, "max_values of locations must be an int >= 1, got 0"),
        ({"max_values": 1.5}, PlanError, r"int >= 1, got 1\.5"),
        ({"grid": {}}, InvalidGridError, "grid must be an object"),
        ({"radius_m": "1/1"}, InvalidBudgetError, "step_m must be smaller for noise"),
        ({"radius_m": "100000/1"}, InvalidBudgetError, "step_m must be larger for noise"),
    ):
        refuses(message, LocationSpec.from_json, SPEC.to_json() | change, error=error)


def test_bad_places_are_refused() -> None:
    pseudonyms, places = np.arange(2, dtype=np.uint64), np.array([6300, 0], np.uint16)
    report, shift = sanitiser().reports, sanitiser().shifts
    refuses(r"place must be in \[0, 6300\) or 65535, got 6300", report, pseudonyms, places)
    refuses(r"places must be uint16 of shape \(2,\), got int64", shift, pseudonyms, places.astype(np.int64))
    refuses(r"got uint16 of \(1,\)", report, pseudonyms, places[:1])
    refuses("pseudonyms must be uint64", report, pseudonyms.astype(np.int64), places)
    refuses(r"plan_version must be in \[1, 255\], got 0", sanitiser, version=0)
