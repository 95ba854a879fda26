"""Short form of the coverage of classes and others: intervals hold as stated; those too narrow are found."""

from dataclasses import replace

import pytest

import ldp
from benchmarks import class_coverage


def test_intervals_hold_as_stated_and_only_narrower_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ldp.stratified
    monkeypatch.setattr(ldp, "stratified", lambda classes: halved(usual(classes)))
    rows = class_coverage.run(40)
    assert {row.kind for row in rows.values()} == {"exact", "bound", "model"}
    bad = [name for name, row in rows.items() if not row.is_good(len(rows))]
    assert bad == ["smp-grr, stratified", "smp-oue, stratified"]


def halved(found: ldp.Estimates) -> ldp.Estimates:
    """Intervals of half the width."""
    low, high = ((found.frequency + end) / 2 for end in (found.ci_low, found.ci_high))
    return replace(found, ci_low=low, ci_high=high)
