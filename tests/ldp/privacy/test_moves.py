"""Moves of a day: which one is reported, and what that loses, by enumeration in fractions."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.__main__ import main
from ldp.codes import NO_ANSWER
from ldp.privacy.moves import Items, MoveSpec
from ldp.protocols.projective import ProjectiveChannel
from tests.ldp.exact import reference_below, reference_grr, refuses
from tests.ldp.privacy.test_joint import law_of
from tests.ldp.privacy.test_plans import built

KEY = bytes(range(16))
PEOPLE = np.arange(1, 13, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
GOLDEN = [54, 30, 57, 2, 108, 50, 5, 6, 87, 61, 77, 93]


def moves_plan(*, places: int = 2, per_day: int = 2, items: Items = "moves", **settings: Any) -> ldp.PlanSpec:
    moves = MoveSpec(places=places, per_day=per_day, items=items)
    change = {key: settings.pop(key) for key in ("kind", "domain_size", "max_values") & settings.keys()}
    asked = {"slug": "trips", "kind": "daily", "domain_size": moves.size, "moves": moves}
    return built(asked | change, **settings)


def spec_of(plan: ldp.PlanSpec) -> MoveSpec:
    moves = plan.indicators[0].moves
    assert moves is not None
    return moves


def days_of(spec: MoveSpec, *, longest: int) -> Iterator[list[int]]:
    """Yield the moves of every day of at most `longest` stays, or of none."""
    for n in range(longest + 1):
        for stays in product(range(spec.places), repeat=n):
            if all(a != b for a, b in pairwise(stays)):
                path = (spec.outside, *stays, spec.outside)
                yield [a * (spec.places + 1) + b for a, b in pairwise(path)] if stays else []


def sets_of(spec: MoveSpec) -> Iterator[list[int]]:
    """Yield the items of every set of places that may be visited on a day, the empty one too."""
    places = range(spec.places)
    code_of = {pair: code for code, pair in enumerate(combinations(places, 2))}
    for visited in chain.from_iterable(combinations(places, n) for n in range(spec.places + 1)):
        yield [*visited] if spec.items == "places" else [code_of[each] for each in combinations(visited, 2)]


def law_of_day(channel: Any, spec: MoveSpec, moves: Sequence[int]) -> list[Fraction]:
    """Probability of each report: of the moves and as many times "no move" as are missing, one is picked."""
    among = [*moves, *[spec.nothing] * (spec.per_day - len(moves))]
    laws = [law_of(channel, value) for value in among]
    return [sum(column) / len(among) for column in zip(*laws, strict=True)]


@pytest.mark.parametrize(("places", "per_day"), [(1, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_certificate_is_the_loss_of_the_worst_two_days(places: int, per_day: int, epsilon: str) -> None:
    """Compare all days of up to one stay more than keep their weight, and the day without a move."""
    plan = moves_plan(places=places, per_day=per_day, days=3, epsilon=Decimal(epsilon))
    channel, spec = plan.answer_channel(0), spec_of(plan)
    found = [law_of_day(channel, spec, moves) for moves in days_of(spec, longest=per_day + 1)]
    assert all(sum(law) == 1 for law in found)
    ratio = max(max(law[y] for law in found) / min(law[y] for law in found) for y in range(len(found[0])))
    certificate = ldp.certify(plan)
    assert ratio == channel.ratio == certificate.indicators[0].ratio
    assert certificate.epsilon_attribute == ldp.epsilon_of(ratio)
    # Fresh bits each day: the laws of three days are multiplied, and so are their ratios.
    assert certificate.epsilon_profile == ldp.epsilon_of(ratio**3) <= 3 * Decimal(epsilon)
    assert certificate.indicators[0].n_values == 3
    assert ldp.certify(plan, extra_daily_values=1).epsilon_profile == ldp.epsilon_of(ratio**4)


@pytest.mark.parametrize(
    ("items", "places", "per_day"), [("places", 3, 2), ("places", 2, 2), ("pairs", 3, 1)]
)
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_visits_lose_no_more_than_the_certificate_and_estimate_shares_with_one_bias(
    items: Items, places: int, per_day: int, epsilon: str
) -> None:
    """Compare all sets of places. Of one estimate, the mean and the variance are enumerated in fractions."""
    plan = moves_plan(places=places, per_day=per_day, items=items, days=3, epsilon=Decimal(epsilon))
    channel, spec = plan.answer_channel(0), spec_of(plan)
    sets = list(sets_of(spec))
    laws = [law_of_day(channel, spec, each) for each in sets]
    ratio = max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in range(len(laws[0])))
    certificate = ldp.certify(plan)
    assert ratio == channel.ratio == certificate.indicators[0].ratio
    assert certificate.epsilon_profile == ldp.epsilon_of(ratio**3)
    # One visitor of each set, all of whom report, of GRR: each report on an item is 1 with some probability.
    asked = ldp.grr_channel(epsilon=Fraction(epsilon), domain_size=spec.size)
    n, gap = len(sets), asked.p - asked.q
    for item in range(spec.nothing):
        picks = [Fraction(each.count(item), max(len(each), per_day)) for each in sets]
        hits = [law_of_day(asked, spec, each)[item] for each in sets]
        estimates = [(hit - asked.q) / gap * per_day for hit in hits]
        truth = [each.count(item) * min(Fraction(1), Fraction(per_day, max(len(each), 1))) for each in sets]
        assert estimates == truth
        exact = sum(hit * (1 - hit) for hit in hits) / (n * gap) ** 2
        f, second = sum(picks) / n, sum(pick**2 for pick in picks) / n
        endless = ldp.pure_variance(float(f), n_reports=n, n_population=10**12, channel=asked)
        assert float(exact) == pytest.approx(float(endless) - float(second - f**2) / n, rel=1e-9)
        assert second <= f / per_day
        if max(map(len, sets)) <= per_day:
            assert second == f / per_day


def test_codes_of_visits_are_those_of_their_size() -> None:
    for items, sizes in (("moves", [4, 9, 16]), ("places", [2, 3, 4]), ("pairs", [2, 4, 7, 11])):
        specs = [MoveSpec.of_size(size, per_day=4, items=items) for size in sizes]
        assert [each.size for each in specs] == sizes
        assert [each.nothing for each in specs] == [size - 1 for size in sizes]
        assert all(MoveSpec.from_json(each.to_json()) == each for each in specs)
    assert MoveSpec(places=2).to_json() == {"places": 2, "per_day": 6}


def reports_on(plan: ldp.PlanSpec, moves: Sequence[int], *, day: int) -> tuple[Any, Any]:
    """Picks and reports of everyone, all with these moves."""
    sanitiser, n = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY)), len(PEOPLE)
    starts, codes = np.arange(n + 1) * len(moves), np.tile(np.array(moves, np.int32), n)
    picked = sanitiser.picked_moves(0, PEOPLE, starts=starts, codes=codes, day=day)
    return picked, sanitiser.report(0, PEOPLE, picked, day=day)[:, 0]


@pytest.mark.parametrize("day", [1, 62])
@pytest.mark.parametrize("moves", [[6, 1, 5], [8], [], [6, 1, 3, 2, 8]])
def test_picks_and_answers_are_those_of_the_layout(moves: Sequence[int], day: int) -> None:
    """Purposes 14 and 15, counter 256 times the day; a day of more moves than keep their weight, too."""
    plan = moves_plan(per_day=3, days=62, epsilon=Decimal(3), mechanism="smp-grr")
    channel, spec = plan.answer_channel(0), spec_of(plan)
    assert isinstance(channel, ldp.GrrChannel)
    among = [*moves, *[spec.nothing] * (3 - len(moves))]
    picked, sent = reports_on(plan, moves, day=day)
    for person, pick, report in zip(PEOPLE.tolist(), picked.tolist(), sent.tolist(), strict=True):
        asked = {"pseudonym": person, "indicator": 0, "counter": 256 * day}
        place = reference_below(KEY, len(among), purpose=14, plan_version=0, value=0, **asked)
        assert pick == among[place]
        answer = {"purpose": 15, "plan_version": 1, "value": pick}
        assert report == reference_grr(KEY, pick, channel=channel, **answer, **asked)


def test_reports_are_the_frozen_ones_and_new_every_day() -> None:
    plan = moves_plan(places=6, per_day=6, days=7)
    assert isinstance(plan.answer_channel(0), ProjectiveChannel)
    moves = [6 * 7 + 0, 0 * 7 + 3, 3 * 7 + 6]
    picked, sent = reports_on(plan, moves, day=2)
    assert sent.tolist() == GOLDEN
    assert set(picked.tolist()) <= {*moves, spec_of(plan).nothing}
    other, later = reports_on(plan, moves, day=3)
    assert (picked != other).any()
    assert (sent != later).mean() > 0.5
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY))
    same = np.zeros(len(PEOPLE), np.int32)
    assert (sanitiser.report(0, PEOPLE, same, day=2) != sanitiser.report(0, PEOPLE, same, day=3)).any()
    assert set(sanitiser.report(0, PEOPLE, same - 1, day=2)[:, 0].tolist()) == {NO_ANSWER}


def test_moves_are_audited_by_command(capsys) -> None:
    asked = ["audit", "moves", "--epsilon", "2", "--domain-size", "3", "--moves", "2", "--days", "2"]
    assert main([*asked, "--runs", "2000", "--key", "00" * 16]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mechanism"] == "moves"
    assert found["epsilon_certified"].startswith("3.99")
    for more, message in (
        (["--domain-size", "3", "4"], "one number of places"),
        (["--weights", "1"], "weights must be"),
    ):
        assert main([*asked, "--runs", "20", *more]) == 2
        assert message in capsys.readouterr().err
    assert main(["audit", "grr", "--epsilon", "1", "--domain-size", "3", "--moves", "2"]) == 2
    capsys.readouterr()
    for name in ("visited-zones", "visited-pairs"):
        assert main(["audit", name, *asked[2:], "--runs", "2000", "--key", "00" * 16]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["mechanism"], found["epsilon_certified"][:4]) == (name, "3.99")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "spl-grr"}, "moves of trips must be absent under spl-grr: use smp"),
        ({"mechanism": "rsfd-grr"}, "moves of trips must be absent under rsfd-grr: use smp"),
        ({"domain_size": 8}, "domain_size of trips must be 9, got 8"),
        ({"kind": "static"}, "trips must be daily, without parts and cuts, to ask for moves"),
        ({"presence_epsilon": Decimal(1), "presence_days": 1}, "absent with the moves trips"),
    ],
)
def test_what_cannot_be_kept_is_refused(settings, message) -> None:
    refuses(message, moves_plan, error=ldp.PlanError, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": 0}, "places of moves must be an integer >= 1, got 0"),
        ({"places": 2, "per_day": 0}, r"per_day of moves must be an integer in \[1, 100\], got 0"),
        ({"places": 2, "per_day": 101}, "got 101"),
        ({"places": 2, "per_day": True}, "got True"),
        ({"places": 2, "items": "trips"}, "items must be one of .*, got 'trips'"),
        ({"places": 1, "items": "pairs"}, "places of pairs must be an integer >= 2, got 1"),
    ],
)
def test_moves_out_of_range_are_refused(change, message) -> None:
    refuses(message, MoveSpec, error=ldp.InvalidDomainError, **change)


def test_moves_have_no_part_in_combinations_and_need_a_day() -> None:
    moves = moves_plan().indicators[0]
    pair = {"slug": "pair", "kind": "daily", "domain_size": 40, "parts": ("i0", "trips")}
    asked = {"slug": "trips", "kind": "daily", "domain_size": 9, "moves": moves.moves}
    refuses("parts of pair must be indicators without parts", built, {}, asked, pair, error=ldp.PlanError)
    sanitiser, nobody = ldp.Sanitiser(moves_plan(), ldp.KeyedPrf(KEY)), np.empty(0, np.int32)
    for day in (0, 63):
        refuses(r"day must be in \[1, 62\]", sanitiser.report, 0, PEOPLE[:0], nobody, day=day)
    refuses("needs a mechanism whose reports are codes", sanitiser.answer, 0, PEOPLE[:0], nobody)
    starts = np.array([0, 2])
    refuses("starts must be", sanitiser.picked_moves, 0, PEOPLE[:1], starts=starts, codes=nobody, day=1)
    other = ldp.Sanitiser(built({}), ldp.KeyedPrf(KEY))
    refuses("needs an indicator of moves", other.picked_moves, 0, PEOPLE, starts=starts, codes=nobody, day=1)


def test_json_keeps_moves_and_has_none_without_them() -> None:
    plan = built({}, {"slug": "trips", "kind": "daily", "domain_size": 9, "moves": MoveSpec(places=2)})
    written = json.loads(json.dumps(plan.to_json()))
    assert ldp.PlanSpec.from_json(written) == plan
    assert [each.get("moves") for each in written["indicators"]] == [None, {"places": 2, "per_day": 6}]
    for bad in (3, {"places": 2, "per_day": 6, "other": 1}, {"places": "2"}):
        written["indicators"][1]["moves"] = bad
        refuses("must", ldp.PlanSpec.from_json, written, error=ldp.LdpError)
