"""RS+FD[GRR] with keyed bits: against plain Python, golden reports, and the promised frequencies."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldp import KeyedPrf, LdpError, choose_indicator, fake_data_channel, pure_frequencies, pure_variance
from ldp.channels import WORD, GrrChannel
from ldp.entropy import ANSWER, CHOOSE_INDICATOR, FAKE_DATA
from ldp.kernels import NO_ANSWER
from ldp.mechanisms import fake_data
from tests.ldp.exact import reference_words

KEY = bytes(range(70, 86))
PRF = KeyedPrf(KEY)
SIZES = (2, 5, 37)
CHANNEL = fake_data_channel("grr", epsilon=Fraction(1), unit="attribute", domain_sizes=SIZES)
N = 60_000
PEOPLE = np.arange(N, dtype=np.uint64)


def below(bound: int, *, word: int, counter: int, **fields: int) -> int:
    """Uniform integer from the given word of the blocks from a counter on."""
    while True:
        drawn = reference_words(KEY, **fields, counter=counter)[word]
        if drawn < WORD // bound * bound:
            return drawn % bound
        counter += 1


def reference(pseudonym: int, values: tuple[int, ...]) -> list[int]:
    """Reports of one subscriber."""
    person: dict[str, int] = {"pseudonym": pseudonym, "value": 0}
    asked = below(3, word=0, counter=0, purpose=CHOOSE_INDICATOR, indicator=0, plan_version=0, **person)
    reports = []
    for i, value in enumerate(values):
        fields = person | {"indicator": i, "plan_version": 9}
        if value < 0:
            reports.append(NO_ANSWER)
        elif i != asked:
            reports.append(below(SIZES[i], word=0, counter=0, purpose=FAKE_DATA, **fields))
        else:
            answer = CHANNEL.reports[i].answer
            assert isinstance(answer, GrrChannel)
            fields |= {"purpose": ANSWER, "value": value}
            kept = reference_words(KEY, counter=0, **fields)[0] < answer.threshold
            other = below(SIZES[i] - 1, word=1, counter=0, **fields)
            reports.append(value if kept else other + (other >= value))
    return reports


def columns(rows: Sequence[tuple[int, ...]]) -> list[NDArray[np.int32]]:
    return list(np.array(rows, np.int32).reshape(-1, 3).T)


def answer_all(values: list[NDArray[np.int32]], pseudonyms: NDArray[np.uint64], **changes: Any) -> Any:
    arguments: dict[str, Any] = {"prf": PRF, "channel": CHANNEL, "plan_version": 9} | changes
    return fake_data.answers(values, pseudonyms=pseudonyms, **arguments)


def population() -> list[NDArray[np.int32]]:
    """Values that depend on each other: a third of all persons have value 1, 1, 1."""
    third = PEOPLE % np.uint64(3) == 0
    return [np.where(third, 1, PEOPLE % np.uint64(size)).astype(np.int32) for size in SIZES]


profiles = st.tuples(*(st.integers(-1, size - 1) for size in SIZES))


@given(people=st.lists(st.tuples(st.integers(0, 2**64 - 1), profiles), max_size=12))
@settings(max_examples=60, deadline=None)
def test_reports_are_those_of_the_reference(people: list[tuple[int, tuple[int, ...]]]) -> None:
    pseudonyms = np.array([pseudonym for pseudonym, _ in people], np.uint64)
    reports = answer_all(columns([profile for _, profile in people]), pseudonyms)
    assert all(codes.dtype == np.uint16 for codes in reports)
    assert np.stack(reports, axis=1).tolist() == [reference(*person) for person in people]


GOLDEN = [[1, 3, 2], [0, 4, 30], [0, 3, 30], [1, 2, 28], [65535, 1, 26], [1, 65535, 21]]


def test_golden_reports() -> None:
    """Frozen: another layout of the bits would give every subscriber a second answer."""
    rows = [(0, 1, 2), (1, 4, 36), (0, 0, 0), (1, 2, 20), (-1, 3, 30), (0, -1, 5)]
    pseudonyms = np.array([0, 1, 2, 3, 2**63, 2**64 - 1], np.uint64)
    assert np.stack(answer_all(columns(rows), pseudonyms), axis=1).tolist() == GOLDEN


def test_only_the_answer_depends_on_the_value() -> None:
    asked = choose_indicator(PEOPLE, prf=PRF, d=3)
    before = answer_all([np.zeros(N, np.int32)] * 3, PEOPLE)
    after = answer_all([np.ones(N, np.int32)] * 3, PEOPLE)
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        assert np.array_equal(old[asked != i], new[asked != i])
        assert np.mean(old[asked == i] != new[asked == i]) > 0.3


def test_fakes_of_indicators_and_plans_are_independent_and_even() -> None:
    sizes = (4, 4, 4)
    channel = fake_data_channel("grr", epsilon=Fraction(1), unit="profile", domain_sizes=sizes)
    values = [np.zeros(N, np.int32)] * 3
    first = answer_all(values, PEOPLE, channel=channel)
    second = answer_all(values, PEOPLE, channel=channel, plan_version=8)
    fakes = choose_indicator(PEOPLE, prf=PRF, d=3) == 0
    n = int(fakes.sum())
    for one, other in [(first[1], first[2]), (first[1], second[1])]:
        table = np.bincount(4 * one[fakes].astype(np.int64) + other[fakes], minlength=16)
        assert np.all(np.abs(table - n / 16) < 5 * np.sqrt(n * 15 / 256))


def test_counts_are_those_of_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_data, "_ROWS_AT_ONCE", 7)
    values = [column[:40].copy() for column in population()]
    values[1][::3] = -1
    reports = answer_all(values, PEOPLE[:40])
    counts = fake_data.support_counts(
        values, pseudonyms=PEOPLE[:40], prf=PRF, channel=CHANNEL, plan_version=9
    )
    for codes, count, size in zip(reports, counts, SIZES, strict=True):
        assert count.dtype == np.int64
        assert count.tolist() == [int((codes == value).sum()) for value in range(size)]
    assert int(counts[1].sum()) == 26


def test_estimates_are_near_the_truth() -> None:
    values = population()
    channel = fake_data_channel("grr", epsilon=Fraction(2), unit="attribute", domain_sizes=SIZES)
    counts = fake_data.support_counts(values, pseudonyms=PEOPLE, prf=PRF, channel=channel, plan_version=9)
    for column, count, report in zip(values, counts, channel.reports, strict=True):
        truth = np.bincount(column, minlength=report.domain_size) / N
        found = pure_frequencies(count, n_reports=N, n_population=N, channel=report)
        errors = np.sqrt(pure_variance(truth, n_reports=N, n_population=N, channel=report))
        distances = np.abs(found.frequency - truth) / errors
        assert distances.max() < 4.5
        assert errors.max() < 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": columns([(0, 0, 0)])[:2]}, "values must be of 3 indicators, got 2"),
        ({"values": columns([(0, 5, 0)])}, r"value must be in \[-1, 5\), got 5 to 5"),
        ({"values": columns([(0, 0, 0), (1, 1, 1)])}, r"values must .*shape \(1,\), got .*\(2,\)"),
        ({"protocol": "ouez"}, "channel must be of GRR, got UnaryChannel"),
        ({"shares": "balanced"}, "shares must be 1/3 each, got "),
    ],
)
@pytest.mark.parametrize("function", [fake_data.answers, fake_data.support_counts])
def test_what_cannot_be_is_refused(
    function: Any, changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_data, "_ROWS_AT_ONCE", 1)  # as many rows as there are persons
    changes = dict(changes)
    values = changes.pop("values", columns([(0, 0, 0)]))
    settings_: dict[str, Any] = {
        "protocol": "grr",
        "epsilon": Fraction(1),
        "unit": "attribute",
        "domain_sizes": SIZES,
    } | changes
    channel = fake_data_channel(settings_.pop("protocol"), **settings_)
    with pytest.raises(LdpError, match=message):
        function(values, pseudonyms=PEOPLE[:1], prf=PRF, channel=channel, plan_version=1)
