"""What a person is told of a batch beyond its numbers."""

import pytest

from mobility.models import Batch
from mobility.services.outcomes import _late_changes


@pytest.mark.parametrize(("late", "is_said"), [(0, False), (10, False), (11, True)])
def test_late_changes_are_said_above_a_share_of_the_subscriber_days(late: int, is_said: bool) -> None:
    batch = Batch(notes={"late_change": late}, checks={"day_subscribers": {"1": 400, "2": 600}})
    assert bool(list(_late_changes(batch))) == is_said


def test_days_that_are_closed_have_no_file_to_speak_of() -> None:
    assert list(_late_changes(Batch(kind=Batch.Kind.CLOSE_DAYS, notes={"late_change": 5}))) == []
