"""The package as a user meets it."""

import doctest

import ldp


def test_example_of_the_package_holds() -> None:
    results = doctest.testmod(ldp)
    assert results.attempted > 10
    assert results.failed == 0


def test_every_public_name_is_there_and_documented() -> None:
    for name in ldp.__all__:
        value = getattr(ldp, name)
        assert isinstance(value, int) or value.__doc__, name
