"""How often does the test of two windows find a difference between equal tables? It should be 5%.

People are drawn again for each key. Their days depend on a habit, their cell of a table does not; everyone is
asked one of three indicators (Smp) and sanitised as in a study. Windows overlap, touch, contain each other or
begin together, so that many or few people are in both. Fails outside 5 +- 1.5%.

    python -m benchmarks.table_change --keys 2000
"""

import argparse
import sys
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.association import LEVEL, TOLERANCE
from ldp.estimation.joint.linear import LinearChannel
from ldp.estimation.strata import windows_change
from ldp.estimation.windows import IndicatorTallies, Window
from ldp.protocols.projective_space import value_counts

DAYS: Final = 4
N_PEOPLE: Final = 27_192  # a mean day of the demo
PAIRS: Final = {
    "touch": (Window(1, 2), Window(3, 4)),
    "overlap": (Window(1, 3), Window(2, 4)),
    "inside": (Window(1, 4), Window(2, 2)),
    "two days": (Window(2, 2), Window(3, 3)),
}
SHAPES: Final = ((3, 4), (12, 37))


def main() -> int:
    """Print a table; 0 if all rates are within the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2000, help="independent study keys")
    options = parser.parse_args()
    sys.stdout.write(f"| categories | epsilon | {' | '.join(PAIRS)} |\n|--|--|{'--|' * len(PAIRS)}\n")
    is_good = True
    for shape in SHAPES:
        for epsilon in (1, 3):
            rates = (p_values(shape, epsilon=epsilon, keys=options.keys) < LEVEL).mean(axis=0)
            is_good &= bool((np.abs(rates - LEVEL) <= TOLERANCE).all())
            shown = " | ".join(f"{100 * rate:.1f}%" for rate in rates)
            sys.stdout.write(f"| {shape[0]} x {shape[1]} | {epsilon} | {shown} |\n")
            sys.stdout.flush()
    return 0 if is_good else 1


def p_values(
    shape: tuple[int, int], *, epsilon: int, keys: int, moved: float = 0.0, n_people: int = N_PEOPLE
) -> NDArray[np.float64]:
    """P-values of each pair of windows; shape (keys, pairs).

    moved : share of the people of the last two days only who are in the first cell
    """
    plan = _plan(shape, epsilon=epsilon)
    found = []
    for key in range(keys):
        name = bytes([*shape, epsilon]) + key.to_bytes(13, "big")
        tallies = _tallies(plan, name, n_people=n_people, moved=moved)
        found.append([p_value(tallies, *windows) for windows in PAIRS.values()])
    return np.array(found)


def p_value(tallies: IndicatorTallies, first: Window, second: Window) -> float:
    """P-value of two windows whose shared people are known."""
    found = windows_change((tallies,), (first, second))
    if found is None:
        raise ValueError("the windows must share a known number of people")
    return found.p_value


def _plan(shape: tuple[int, int], *, epsilon: int) -> ldp.PlanSpec:
    single = [
        ldp.IndicatorRequest(slug=f"part{place}", kind="static", domain_size=size)
        for place, size in enumerate(shape)
    ]
    parts = tuple(each.slug for each in single)
    size = (shape[0] + 1) * (shape[1] + 1)
    both = ldp.IndicatorRequest(slug="both", kind="static", domain_size=size, parts=parts)
    return ldp.build_plan(
        mechanism="smp-grr",
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=Decimal(epsilon),
        indicators=[*single, both],
    )


def _tallies(plan: ldp.PlanSpec, key: bytes, *, n_people: int, moved: float) -> IndicatorTallies:
    """Sanitise and tally the table of one crowd."""
    stream, sanitiser = ldp.KeyedStream(key), ldp.Sanitiser(plan, ldp.KeyedPrf(key[::-1]))
    pseudonyms = np.arange(1, n_people + 1, dtype=np.uint64)
    habits = np.array([0b0001, 0b0011, 0b0110, 0b1111, 0b1000, 0b1100, 0b1010], np.uint64)
    bitmaps = habits[stream.uniform_int(n_people, 0, habits.size)]
    cells = plan.indicators[2].domain_size
    values = np.minimum(stream.uniform_int(n_people, 0, cells), stream.uniform_int(n_people, 0, cells))
    is_moved = (bitmaps & np.uint64(0b0011) == 0) & (stream.uniform_int(n_people, 0, 10**6) < 1e6 * moved)
    values = np.where(is_moved, 0, values).astype(np.int32)
    nothing = np.full(n_people, -1, np.int32)
    delta = ldp.Delta.zero(plan)
    ldp.tally_visitors(bitmaps, delta.visitors, sign=1)
    words = sanitiser.reports(pseudonyms, [nothing, nothing, values])[2]
    ldp.tally_reports(bitmaps, words, delta, index=2, is_unary=False, sign=1)
    channel = plan.answer_channel(2)
    if not isinstance(channel, LinearChannel):
        raise ValueError(f"answers must be codes, got {channel}")
    return IndicatorTallies(
        counts=value_counts(delta.counts[2], channel=channel),
        n_reports=delta.n_reports[2],
        visitors=delta.visitors,
        kind="static",
        channel=channel,
    )


if __name__ == "__main__":
    sys.exit(main())
