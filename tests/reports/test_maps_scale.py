"""Classes of a map: few, round, fixed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.maps_scale import MAX_CLASSES, NOT_READ, fixed_scale


def scale_of(*values: float):
    return fixed_scale(np.array(values, np.float64))


def test_even_values_have_equal_round_classes_from_zero() -> None:
    scale = scale_of(-3.0, 4.0, 12.0, 38.0)
    assert scale.breaks == (10.0, 20.0, 30.0)
    assert (scale.low, scale.high) == (-3.0, 38.0)
    assert scale.labels(unit=" %") == ["under 10 %", "10 to 20 %", "20 to 30 %", "30 % and more"]


def test_a_round_step_that_is_a_little_too_small_is_better_than_one_twice_as_large() -> None:
    assert scale_of(-10.2, 11.6, 34.7, 51.3).breaks == (10.0, 20.0, 30.0, 40.0)


def test_skewed_values_have_classes_that_grow() -> None:
    scale = scale_of(*range(1, 40), 900.0)
    assert scale.breaks == (5.0, 20.0, 100.0, 500.0)
    assert scale.breaks[0] <= 20  # the median is told apart from the largest


def test_values_that_are_close_have_classes_among_them() -> None:
    scale = scale_of(12.1, 12.4, 12.9, 13.3)
    assert scale.breaks[0] > 12.1
    assert scale.breaks[-1] < 13.3
    assert scale.n_classes == 5


@pytest.mark.parametrize("values", [(), (0.0,), (5.0, 5.0), (-2.0, -1.0)])
def test_without_a_difference_there_is_one_class(values: tuple[float, ...]) -> None:
    scale = scale_of(*values)
    assert scale.labels() == ["all values"]
    assert set(scale.classes(np.array(values))) <= {0}


@given(
    st.lists(st.floats(min_value=-1e6, max_value=1e9).map(lambda value: round(value, 3)), min_size=1),
)
def test_every_value_has_a_class_and_order_is_kept(values: list[float]) -> None:
    scale = fixed_scale(np.array(values))
    assert scale.n_classes <= MAX_CLASSES
    assert list(scale.breaks) == sorted(set(scale.breaks))
    assert all(scale.low < each <= scale.high or each > 0 for each in scale.breaks)
    classes = scale.classes(np.array(sorted(values)))
    assert (np.diff(classes) >= 0).all()
    assert [scale.class_of(value) for value in sorted(values)] == classes.tolist()
    assert len(set(scale.labels())) == scale.n_classes


@given(st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=2, unique=True))
def test_largest_and_least_are_told_apart(values: list[float]) -> None:
    low, high = min(values), max(values)
    if high > low * (1 + 1e-6):
        scale = fixed_scale(np.array(values))
        assert scale.class_of(high) == scale.n_classes - 1
        assert scale.class_of(low) < scale.class_of(high)


def test_what_is_no_number_is_not_read_and_sets_no_bounds() -> None:
    scale = scale_of(np.nan, 1.0, 10.0)
    assert scale.low == 1.0
    assert scale.classes(np.array([np.nan, 10.0])).tolist() == [NOT_READ, scale.n_classes - 1]
