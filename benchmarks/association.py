"""How often does the test of association reject where two attributes are independent? It should be 5%.

People are drawn again for each key, answer the first attribute, the second or both together (Smp, a third
each) and are sanitised as in a study; one in ten has no value of the first. Fails outside 5 +- 1.5%.

    python -m benchmarks.association --keys 1000
"""

import argparse
import sys
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.joint.association import Margin, independence_test, margin_of
from ldp.estimation.joint.crosstab import Reports
from ldp.estimation.joint.linear import LinearChannel
from ldp.keyed.choices import choose_indicator
from ldp.privacy.joint import joint_codes, joint_size
from ldp.protocols.projective_space import value_counts

SHAPES: Final = ((3, 3), (3, 12), (8, 11), (12, 37))
N_PEOPLE: Final = 27_192  # a mean day of the demo
LEVEL: Final = 0.05
TOLERANCE: Final = 0.015
MISSING: Final = 0.1

Codes = NDArray[np.int32]


def main() -> int:
    """Print a table; 0 if all rates are within the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    options = parser.parse_args()
    sys.stdout.write(
        "| categories | epsilon | rejected at 5% | with margins of the same table |\n|--|--|--|--|\n"
    )
    is_good = True
    for shape in SHAPES:
        for epsilon in (1, 3):
            rates = (p_values(shape, epsilon=epsilon, keys=options.keys) < LEVEL).mean(axis=0)
            is_good &= bool(abs(rates[0] - LEVEL) <= TOLERANCE)
            shown = " | ".join(f"{100 * rate:.1f}%" for rate in rates)
            sys.stdout.write(f"| {shape[0]} x {shape[1]} | {epsilon} | {shown} |\n")
            sys.stdout.flush()
    return 0 if is_good else 1


def p_values(
    shape: tuple[int, int], *, epsilon: int, keys: int, together: float = 0.0, n_people: int = N_PEOPLE
) -> NDArray[np.float64]:
    """P-values with the margins of the single indicators, and with those of the table; shape (keys, 2).

    together : share of people whose second value follows from the first
    """
    found = []
    for key in range(keys):
        stream = ldp.KeyedStream(bytes([*shape, epsilon]) + key.to_bytes(13, "big"))
        rows, columns = (_drawn(stream, n_people, size) for size in shape)
        columns = np.where(_chance(stream, n_people, together), rows % shape[1], columns)
        rows = np.where(_chance(stream, n_people, MISSING), -1, rows)
        found.append(_tests([rows, columns], shape, Fraction(epsilon), key=key))
    return np.array(found)


def _tests(
    values: list[Codes], shape: tuple[int, int], epsilon: Fraction, *, key: int
) -> tuple[float, float]:
    prf = ldp.KeyedPrf(bytes([*shape, int(epsilon)]) + key.to_bytes(13, "little"))
    pseudonyms = np.arange(1, values[0].size + 1, dtype=np.uint64)
    asked = choose_indicator(pseudonyms, prf=prf, d=3)
    channels: list[LinearChannel] = [ldp.grr_channel(epsilon=epsilon, domain_size=size) for size in shape]
    channels.append(ldp.code_channel(epsilon=epsilon, domain_size=joint_size(shape)))
    columns = [*values, joint_codes(values, sizes=shape)]
    first, second, both = (
        _reports(column[asked == index], pseudonyms[asked == index], prf, channel, index, values[0].size)
        for index, (column, channel) in enumerate(zip(columns, channels, strict=True))
    )
    sizes = [size + 1 for size in shape]
    layout = np.arange(np.prod(sizes)).reshape(sizes)[:-1, :-1, np.newaxis]
    single = [margin_of(reports, asked=1 / 3) for reports in (first, second)]
    same = [_of_table(both, layout, axis) for axis in (1, 0)]
    return tuple(
        independence_test(both, layout=layout, rows=rows, columns=columns).p_value
        for rows, columns in (single, same)
    )


def _of_table(both: Reports, layout: NDArray[np.int64], axis: int) -> Margin:
    """A margin of the same table, as if other people had reported it."""
    cells = both.estimates.frequency[layout[:, :, 0]]
    has_value = cells.sum()
    shares = cells.sum(axis=axis) / has_value
    channel = ldp.code_channel(epsilon=Fraction(1), domain_size=max(2, shares.size))
    estimates = ldp.Estimates(
        frequency=shares,
        std_error=shares,
        ci_low=shares,
        ci_high=shares,
        consistent=ldp.project_simplex(shares),
    )
    sizes = {"n_reports": both.n_reports, "n_population": both.n_population}
    reports = Reports(estimates=estimates, channel=channel, **sizes)  # type: ignore[arg-type]
    return Margin(reports=reports, has_value=float(has_value), has_value_variance=0.0)


def _reports(
    values: Codes,
    pseudonyms: NDArray[np.uint64],
    prf: ldp.KeyedPrf,
    channel: LinearChannel,
    index: int,
    n: int,
) -> Reports:
    codes = ldp.oracle_answers(
        values.astype(np.int32),
        pseudonyms=pseudonyms,
        prf=prf,
        channel=channel,
        indicator=index,
        plan_version=1,
    )
    counts = np.bincount(codes[values >= 0], minlength=getattr(channel, "n_codes", channel.domain_size))
    sizes = {"n_reports": int((values >= 0).sum()), "n_population": n}
    estimates = ldp.pure_frequencies(value_counts(counts, channel=channel), channel=channel, **sizes)
    return Reports(estimates=estimates, channel=channel, **sizes)


def _drawn(stream: ldp.KeyedStream, n: int, size: int) -> Codes:
    """Values of which the first are the most frequent."""
    return np.minimum(stream.uniform_int(n, 0, size), stream.uniform_int(n, 0, size)).astype(np.int32)


def _chance(stream: ldp.KeyedStream, n: int, share: float) -> NDArray[np.bool_]:
    return stream.uniform_int(n, 0, 1000) < 1000 * share


if __name__ == "__main__":
    sys.exit(main())
