"""A few seconds of what `make fuzz` does for minutes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mobility.readers.any_file import check, files


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=files, block=st.sampled_from([64, 300, 4 << 20]), step=st.integers(1, 400))
def test_any_file_is_read_or_refused_as_a_whole_and_in_chunks(data: bytes, block: int, step: int) -> None:
    check(data, block=block, step=step)
