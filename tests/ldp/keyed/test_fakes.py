"""RS+FD and RS+RFD with keyed bits: against plain Python, golden reports, and the promised frequencies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ldp
from ldp.codes import NO_ANSWER
from ldp.kernels import fakes as fake_kernels
from ldp.kernels.entropy import ANSWER, CHOOSE_INDICATOR, FAKE_BITS, FAKE_DATA, word_bounds
from ldp.keyed.fakes import data as fake_data
from ldp.keyed.fakes.values import FakeNumbers
from ldp.protocols.channels import WORD, GrrChannel
from tests.ldp.exact import (
    FixedPrf,
    digest,
    packed,
    reference_below,
    reference_bits,
    reference_grr,
    reference_lanes,
    reference_words,
    refuses,
)
from tests.ldp.fakes import law, prior, supports

KEY = bytes(range(70, 86))
PRF = ldp.KeyedPrf(KEY)
VERSION = 9
SIZES = (2, 5, 70, 60, 3)
N = 60_000
PEOPLE = np.arange(N, dtype=np.uint64)

Channel = ldp.FakeDataChannel | ldp.PriorFakeDataChannel


def made(protocol: str, *, sizes: Sequence[int] = SIZES, shares: str = "equal", epsilon: int = 1) -> Channel:
    common = {"epsilon": Fraction(epsilon), "unit": "attribute", "shares": shares}
    if protocol.startswith("prior-"):
        # The first value is never a fake code: then all shares must be equal.
        least = 0 if shares == "equal" else 1
        priors = [prior(*range(least, least + size)) for size in sizes]
        return ldp.prior_fake_data_channel(protocol.removeprefix("prior-"), priors=priors, **common)
    return ldp.fake_data_channel(protocol, domain_sizes=sizes, **common)


def with_share(report: ldp.FakedChannel, share: Fraction) -> ldp.FakedChannel:
    return replace(report, share=share)


def mixed() -> ldp.FakeDataChannel:
    answers = [
        (ldp.oue_channel(epsilon=Fraction(1), domain_size=2), "no value"),
        (ldp.grr_channel(epsilon=Fraction(2), domain_size=5), "code"),
        (ldp.sue_channel(epsilon=Fraction(3), domain_size=70), "no value"),
        (ldp.sue_channel(epsilon=Fraction(1, 2), domain_size=60), "any value"),
        (ldp.grr_channel(epsilon=Fraction(1), domain_size=3), "code"),
    ]
    shares = [Fraction(weight, 16) for weight in (1, 3, 5, 2, 5)]
    reports = [ldp.FakedChannel(answer=answer, fake=fake, share=Fraction(1)) for answer, fake in answers]
    return ldp.FakeDataChannel(reports=tuple(map(with_share, reports, shares)))


PROTOCOLS = ["grr", "ouez", "suez", "ouer", "suer", "adp", "prior-grr", "prior-ouer", "prior-suer"]
CHANNELS: dict[str, Callable[[], Channel]] = {"mixed": cache(mixed)} | {
    f"{protocol}-{shares}": cache(partial(made, protocol, shares=shares))
    for shares, protocols in (("equal", PROTOCOLS[:4] + PROTOCOLS[6:7]), ("balanced", PROTOCOLS[3:]))
    for protocol in protocols
}
profiles_st = st.tuples(*(st.integers(-1, size - 1) for size in SIZES))
every_channel = pytest.mark.parametrize("name", CHANNELS)


def picked(weights: Sequence[int], word: int) -> int:
    return next(i for i, total in enumerate(accumulate(weights)) if word < total)


def groups_of(channel: Channel) -> list[list[int]]:
    found: list[list[int]] = []
    sizes = [report.domain_size for report in channel.reports]
    for i, report in enumerate(channel.reports):
        if report.fake == "no value":
            continue
        fits = bool(found) and prod(sizes[j] for j in found[-1]) * sizes[i] <= 4096
        if fits and isinstance(channel, ldp.FakeDataChannel):
            found[-1].append(i)
        else:
            found.append([i])
    return found


def fake_value(channel: Channel, index: int, *, pseudonym: int) -> int:
    groups = groups_of(channel)
    place = next(i for i, group in enumerate(groups) if index in group)
    fields = {"pseudonym": pseudonym, "purpose": FAKE_DATA, "indicator": 0, "plan_version": VERSION}
    fields |= {"value": place // 2}
    if isinstance(channel, ldp.PriorFakeDataChannel):
        words = reference_words(KEY, counter=0, **fields)
        return picked(channel.reports[index].prior, words[place % 2])
    sizes = [channel.reports[i].domain_size for i in groups[place]]
    number = reference_below(KEY, prod(sizes), word=place % 2, **fields)
    for i, size in zip(groups[place], sizes, strict=True):
        if i == index:
            return number % size
        number //= size
    raise AssertionError


def reference(channel: Channel, index: int, *, asked: int, value: int, pseudonym: int) -> Any:
    report = channel.reports[index]
    answer = report.answer
    fields = {"pseudonym": pseudonym, "indicator": index, "plan_version": VERSION}
    if value < 0:
        return NO_ANSWER if report.fake == "code" else [0] * report.domain_size
    if index == asked and isinstance(answer, GrrChannel):
        return reference_grr(KEY, value, channel=answer, purpose=ANSWER, value=value, **fields)
    if index == asked:
        return reference_bits(KEY, value, channel=answer, purpose=ANSWER, value=value, **fields)
    if report.fake == "no value":
        empty = [i for i, other in enumerate(channel.reports) if other.fake == "no value"]
        first = sum(channel.reports[i].domain_size for i in empty if i < index)
        everything = sum(channel.reports[i].domain_size for i in empty)
        fields |= {"indicator": empty[0], "purpose": FAKE_BITS, "value": 0}
        own = reference_lanes(KEY, everything, **fields)[first : first + report.domain_size]
        return [int(number < answer.threshold_q) for number in own]
    fake = fake_value(channel, index, pseudonym=pseudonym)
    if report.fake == "code":
        return fake
    return reference_bits(KEY, fake, channel=answer, purpose=FAKE_BITS, value=fake, **fields)


def asked_of(channel: Channel, pseudonym: int) -> int:
    shares = [report.share for report in channel.reports]
    fields = {"purpose": CHOOSE_INDICATOR, "indicator": 0, "plan_version": 0, "value": 0}
    if len(set(shares)) == 1:
        return reference_below(KEY, len(shares), pseudonym=pseudonym, **fields)
    word = reference_words(KEY, pseudonym=pseudonym, counter=0, **fields)[0]
    return picked([int(WORD * share) for share in shares], word)


def plain(reports: NDArray[Any], row: int, size: int) -> Any:
    if reports.dtype == np.uint16:
        return int(reports[row])
    assert reports.shape[1] == -(-size // 64)
    number = sum(int(word) << 64 * i for i, word in enumerate(reports[row]))
    assert number >> size == 0
    return [number >> lane & 1 for lane in range(size)]


def columns(rows: Sequence[tuple[int, ...]], d: int = len(SIZES)) -> list[NDArray[np.int32]]:
    return [column.copy() for column in np.array(rows, np.int32).reshape(-1, d).T]


def answer_all(values: list[NDArray[np.int32]], pseudonyms: NDArray[np.uint64], **changes) -> Any:
    arguments = {"prf": PRF, "plan_version": VERSION} | changes
    return fake_data.answers(values, pseudonyms=pseudonyms, **arguments)


def count_all(values: list[NDArray[np.int32]], pseudonyms: NDArray[np.uint64], **changes) -> Any:
    arguments = {"prf": PRF, "plan_version": VERSION} | changes
    return fake_data.support_counts(values, pseudonyms=pseudonyms, **arguments)


@every_channel
@given(people=st.lists(st.tuples(st.integers(0, 2**64 - 1), profiles_st), max_size=4))
@settings(max_examples=6, deadline=None)
def test_reports_are_those_of_the_reference(name: str, people: list[tuple[int, tuple[int, ...]]]) -> None:
    channel = CHANNELS[name]()
    pseudonyms = np.array([pseudonym for pseudonym, _ in people], np.uint64)
    found = answer_all(columns([profile for _, profile in people]), pseudonyms, channel=channel)
    for row, (pseudonym, profile) in enumerate(people):
        asked = asked_of(channel, pseudonym)
        for i, reports in enumerate(found):
            expected = reference(channel, i, asked=asked, value=profile[i], pseudonym=pseudonym)
            assert plain(reports, row, SIZES[i]) == expected
    assert [reports.shape[0] for reports in found] == [len(people)] * len(SIZES)


GOLDEN = {"mixed": "a5a52378bf8373fe", "grr-equal": "d6901a7ed2dddcd2"}
GOLDEN["prior-grr-balanced"] = "0c52f3998cd7138e"


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_reports(name: str) -> None:
    """Frozen: another layout of the bits would give every subscriber a second answer."""
    rows = [(0, 1, 2, 3, 2), (1, 4, 69, 59, 0), (0, 0, 0, 0, 0), (1, 2, 20, 30, 1), (-1, 3, 64, -1, 2)]
    pseudonyms = np.array([0, 1, 2, 2**63, 2**64 - 1], np.uint64)
    assert digest(*answer_all(columns(rows), pseudonyms, channel=CHANNELS[name]())) == GOLDEN[name]


@pytest.mark.parametrize("protocol", ["grr", "ouez", "ouer", "prior-grr", "prior-ouer"])
def test_reports_of_many_follow_the_joint_law(protocol: str) -> None:
    sizes = (4, 2, 2)
    channel = made(protocol, sizes=sizes, shares="balanced", epsilon=2)
    profile = tuple(size - 1 for size in sizes)
    found = answer_all([np.full(N, value, np.int32) for value in profile], PEOPLE, channel=channel)
    rows = np.stack([reports.reshape(N).astype(np.int64) for reports in found], axis=1)
    outcomes, counts = np.unique(rows, axis=0, return_counts=True)
    expected = {
        tuple(y if isinstance(y, int) else packed(y)[0] for y in outcome): float(probability)
        for outcome, probability in law(channel, profile).items()
    }
    observed = dict(zip(map(tuple, outcomes.tolist()), counts.tolist(), strict=True))
    assert set(observed) <= set(expected)
    # Pearson's statistic, in standard deviations of its law.
    parts = [(observed.get(y, 0) - N * p) ** 2 / (N * p) for y, p in expected.items()]
    degrees = len(expected) - 1
    assert abs(sum(parts) - degrees) < 4.5 * (2 * degrees) ** 0.5


def test_biased_words_are_drawn_again_each_by_itself() -> None:
    def bits(pseudonym: int, *, value: int, counter: int) -> tuple[int, int]:
        """First words of some subscribers are too large, several times; the second word of one once."""
        first = WORD - 1 if pseudonym > counter else 100 + counter
        second = WORD - 1 if (pseudonym, counter) == (1, 0) else 200 + counter
        return first, second

    drawn, people = np.empty((2, 4), np.uint16), np.arange(4, dtype=np.uint64)
    numbers = FakeNumbers(made("grr", sizes=(60, 60, 70)).reports, plan_version=1)
    numbers.draw(people, buffer=FixedPrf(bits).buffer(4), out=drawn)
    assert drawn.tolist() == [[100, 101, 102, 103], [200 % 70, 201 % 70, 200 % 70, 200 % 70]]


@pytest.mark.parametrize(
    "exact",
    [prior(0, 3, 0, 1), prior(*(1,) * 7, 0), prior(0, 1), prior(1, 0), (WORD - 1, 1), (1, WORD - 2, 0, 1)],
    ids=str,
)
def test_words_pick_what_they_stand_for(exact: tuple[int, ...]) -> None:
    bounds = word_bounds(exact)
    totals = [0, *accumulate(exact)]
    words = sorted({word for total in totals for word in (total - 1, total, total + 1) if 0 <= word < WORD})
    out = np.empty(len(words), np.uint16)
    sealed = np.repeat(np.array(words, np.uint64).byteswap(), 2)
    fake_kernels.pick_words(sealed, bounds, out)
    assert out.tolist() == [picked(exact, word) for word in words]


@every_channel
def test_counts_are_those_of_the_reports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_data, "_ROWS_AT_ONCE", 17)
    channel, people = CHANNELS[name](), PEOPLE[:100]
    values = [(people % np.uint64(size)).astype(np.int32) for size in SIZES]
    values[1][::3] = -1
    values[2][::7] = -1
    values[3][50:] = -1
    found = answer_all(values, people, channel=channel)
    counts = count_all(values, people, channel=channel)
    for i, (reports, count, size) in enumerate(zip(found, counts, SIZES, strict=True)):
        assert count.dtype == np.int64
        everyone = [plain(reports, row, size) for row in range(100)]
        sent = [y for y in everyone if y != NO_ANSWER]
        report = channel.reports[i]
        assert count.tolist() == [sum(supports(report, y, value) for y in sent) for value in range(size)]
        if report.fake == "code":
            assert int(count.sum()) == int((values[i] >= 0).sum())


@pytest.mark.parametrize("function", [answer_all, count_all])
def test_what_cannot_be_is_refused(function, monkeypatch) -> None:
    monkeypatch.setattr(fake_data, "_ROWS_AT_ONCE", 1)  # as many rows as there are persons
    channel, values = made("grr", sizes=(2, 5, 7)), columns([(0, 0, 0)], 3)
    for changed, message in (
        (values[:2], "values must be of 3 indicators, got 2"),
        (columns([(0, 5, 0)], 3), r"value must be in \[-1, 5\), got 5 to 5"),
        (columns([(0, 0, -2)], 3), r"value must be in \[-1, 7\), got -2 to -2"),
        (columns([(0, 0, 0), (1, 1, 1)], 3), r"values must .*shape \(1,\), got .*\(2,\)"),
        ([np.zeros(1)] * 3, "values must be int32 of shape .*, got float64"),
    ):
        refuses(message, function, changed, PEOPLE[:1], channel=channel)
    shares = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    channel = replace(channel, reports=tuple(map(with_share, channel.reports, shares)))
    refuses("shares must be equal, or .*got 1/2, 1/3", function, values, PEOPLE[:1], channel=channel)
