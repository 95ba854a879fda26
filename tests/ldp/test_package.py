"""The package as a user meets it."""

import doctest
import re
from pathlib import Path

import ldp


def test_example_of_the_package_holds() -> None:
    results = doctest.testmod(ldp)
    assert results.attempted > 10
    assert results.failed == 0


def test_every_public_name_is_there_and_documented() -> None:
    for name in ldp.__all__:
        value = getattr(ldp, name)
        assert isinstance(value, int) or value.__doc__, name


def test_the_overview_names_every_channel_and_nothing_that_is_not_there() -> None:
    text = (Path(__file__).parents[2] / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Za-z]+_[a-z_]+|[A-Z][a-z]+[A-Za-z]*)\b", text))
    assert len(named) > 40
    assert named - set(ldp.__all__) == set()
    channels = [name for name in ldp.__all__ if name.endswith("_channel")]
    assert [name for name in channels if f"`{name}" not in text] == []
