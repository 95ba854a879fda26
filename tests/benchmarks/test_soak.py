"""Every mechanism of study files runs through the benchmarks that sanitise by it."""

import pytest

from benchmarks import cold_start, soak


@pytest.mark.parametrize("mechanism", soak.MECHANISMS)
def test_errors_of_one_key_are_about_as_stated(mechanism: soak.Mechanism) -> None:
    """Within a factor of 2: 1 key says no more; many keys are asked by `make soak`."""
    sums = soak.run_keys(mechanism, "profile", [bytes(16)])
    assert (sums.intervals > 0).all()
    assert 0.5 < sums.squared.sum() / sums.expected.sum() < 2


def test_every_mechanism_sanitises_in_a_new_process() -> None:
    cold_start.main()
