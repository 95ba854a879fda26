"""Cross-tabulations: published figures, other protocols in the same run, and speed.

- Half widths of one cell on MS-FIMU with declared pairs: 1.96 times the deviation over many keys.
- Sizes of the grids of HDG (Yang et al., PVLDB 2020) by its rule.
- Ranges over two of six attributes: HDG and TDG over all pairs (their grids, ported) and one declared pair.
  How much of each error is noise, and how much comes from equal shares inside cells, which stays without it.
- Variance of one value by other protocols, and speed of reports and of decoding.

    python -m benchmarks.crosstab --keys 400
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import cbrt, exp, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.peers import pure_ldp_error
from benchmarks.reproduce.marginals import everybody
from ldp.keyed.choices import choose_indicator
from ldp.privacy.joint import joint_codes, joint_size
from ldp.protocols.projective_space import value_counts

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
N_HDG: Final = 1_000_000
D: Final = 6
C: Final = 64
AGE, REGION = 3, 4  # places of the attributes with 12 and 37 values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=400, help="independent study keys")
    parser.add_argument("--reports", type=int, default=4_000_000, help="of the measured speed")
    options = parser.parse_args()
    for line in (
        *half_width_lines(options.keys),
        "",
        *("grids of HDG, epsilon 0.2 to 2: " + " ".join(f"({a}, {b})" for a, b in hdg_grids()),),
        "",
        *range_lines(),
        "",
        *oracle_lines(),
        "",
        *speed_lines(options.reports),
    ):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0


def half_width_lines(keys: int) -> Iterator[str]:
    """Half widths in points, computed and measured."""
    yield "| questions | asked | formula | measured |\n|--|--|--|--|"
    for n_questions, is_pair, name in (
        (6, False, "one attribute of 6"),
        (7, False, "one attribute, 1 pair declared"),
        (7, True, "a cell of that pair"),
        (9, True, "a cell, 3 pairs declared"),
    ):
        formula, measured = half_widths(n_questions, is_pair=is_pair, keys=keys)
        yield f"| {name} | 1 in {n_questions} | {formula:.2f} | {measured:.2f} |"


def half_widths(n_questions: int, *, is_pair: bool, keys: int) -> tuple[float, float]:
    """Half of the 95% interval of a rare value on MS-FIMU at epsilon 1: points, expected and measured."""
    people = everybody()
    if is_pair:
        parts = [np.ascontiguousarray(people.columns[place]) for place in (AGE, REGION)]
        values = joint_codes(parts, sizes=[12, 37])
        channel: Any = ldp.code_channel(epsilon=Fraction(1), domain_size=joint_size([12, 37]))
    else:
        values = people.columns[REGION]
        channel = ldp.oue_channel(epsilon=Fraction(1), domain_size=37)
    n_people, k = values.size, channel.domain_size
    truth = np.bincount(values, minlength=k) / n_people
    rare = truth < 0.01
    errors = []
    for key in range(keys):
        prf = ldp.KeyedPrf(key.to_bytes(16, "big"))
        here = choose_indicator(people.pseudonyms, prf=prf, d=n_questions) == n_questions - 1
        counts = counts_of(values[here], people.pseudonyms[here], prf=prf, channel=channel)
        estimates = ldp.pure_frequencies(
            counts, n_reports=int(here.sum()), n_population=n_people, channel=channel
        )
        errors.append(estimates.frequency - truth)
    measured = float(np.sqrt(np.mean(np.square(errors)[:, rare])))
    variance = ldp.pure_variance(
        truth[rare], n_reports=n_people / n_questions, n_population=n_people, channel=channel
    )
    return 196 * sqrt(float(variance.mean())), 196 * measured


def counts_of(
    values: Codes, pseudonyms: NDArray[np.uint64], *, prf: ldp.KeyedPrf, channel: Any
) -> NDArray[np.int64]:
    """Sanitise, tally and decode: reports that support each value."""
    fields: Any = {
        "pseudonyms": pseudonyms,
        "prf": prf,
        "channel": channel,
        "indicator": 0,
        "plan_version": 1,
    }
    if isinstance(channel, ldp.ProjectiveChannel):
        codes = np.bincount(ldp.oracle_answers(values, **fields), minlength=channel.n_codes)
        return value_counts(codes, channel=channel)
    return ldp.support_counts(values, **fields)


def hdg_grids(n: int = N_HDG, d: int = D, c: int = C) -> list[tuple[int, int]]:
    """Cells of a one-way grid and of one side of a two-way grid, for epsilon 0.2, 0.4, ..., 2."""
    found = []
    for step in range(1, 11):
        e = exp(0.2 * step)
        of_grid = n / (d + d * (d - 1) // 2)
        one = cbrt(of_grid * (e - 1) ** 2 * 0.7**2 / (2 * e))
        two = sqrt(2 * 0.03 * (e - 1) * sqrt(of_grid / e))
        found.append((_near_power(one, c), _near_power(two, c)))
    return found


def _near_power(size: float, most: int) -> int:
    powers = [2**exponent for exponent in range(1, most.bit_length())]
    return min(powers, key=lambda power: abs(power - size))


def tdg_grid(step: int, n: int = N_HDG, d: int = D, c: int = C) -> int:
    """Cells of one side of a grid of TDG, which has two-way grids only, for epsilon 0.2 times `step`."""
    e = exp(0.2 * step)
    return _near_power(sqrt(2 * 0.03 * (e - 1) * sqrt(n / (d * (d - 1) // 2) / e)), c)


def range_lines() -> Iterator[str]:
    """Mean absolute errors in points: shares in random ranges of half of the values of both attributes."""
    yield "| data | epsilon | method | error | of noise | without noise |\n|--|--|--|--|--|--|"
    for name, draw in (("Gaussian", _gaussian), ("Zipf 1.1", _zipf)):
        for step in (5, 10):
            for method, errors in range_errors(draw, step=step).items():
                shown = " | ".join(f"{100 * each:.2f}" for each in errors)
                yield f"| {name} | {step / 5:g} | {method} | {shown} |"


def range_errors(
    draw: Callable[[ldp.KeyedStream], Floats], *, step: int, runs: int = 200
) -> dict[str, list[float]]:
    """Errors of the grids of HDG and TDG, of all cells of a pair, and of groups of 8 values.

    Each in all, of the noise alone, and without noise.
    """
    stream = ldp.KeyedStream(step.to_bytes(16, "big"))
    truth = draw(stream)
    noise = 4 * exp(0.2 * step) / (exp(0.2 * step) - 1) ** 2 / N_HDG  # of a cell, if everyone answered
    one, two = hdg_grids()[step - 1]

    # One pair is asked of one in seven people: there are six attributes too. `size` is 1, or 0 without noise.
    def groups(size: float, n: int) -> Floats:
        return _grouped(truth, n, n) + sqrt(7 * noise * size) * _normal(stream, n, n)

    def grids(size: float, n_grids: int, *, one: int | None, two: int) -> Floats:
        return _fitted(truth, one=one, two=two, noise=n_grids * noise * size, stream=stream)

    methods: dict[str, Callable[[float], Floats]] = {
        "HDG, all 15 pairs": lambda size: grids(size, 21, one=one, two=two),
        "TDG, all 15 pairs": lambda size: grids(size, 15, one=None, two=tdg_grid(step)),
        "one pair, 64 x 64": lambda size: groups(size, C),
        "one pair, 8 x 8 groups": lambda size: _spread(groups(size, 8)),
        "the same, none negative": lambda size: _spread(_none_negative(groups(size, 8))),
    }
    places = ldp.KeyedStream(b"random ranges...").uniform_int(2 * runs, 0, C // 2).reshape(runs, 2, 1)
    asked = ((places <= np.arange(C)) & (np.arange(C) < places + C // 2)).astype(np.float64)
    right = _answers(asked, [truth] * runs)
    found = {}
    for name, method in methods.items():
        noisy, exact = (
            _answers(asked, tables) for tables in ([method(1) for _ in asked], [method(0)] * runs)
        )
        found[name] = [float(np.abs(each).mean()) for each in (noisy - right, noisy - exact, exact - right)]
    return found


def _answers(asked: Floats, tables: Sequence[Floats]) -> Floats:
    """Share in each range, from a table for each."""
    return np.array([rows @ table @ columns for (rows, columns), table in zip(asked, tables, strict=True)])


def _none_negative(table: Floats) -> Floats:
    return ldp.project_simplex(table.ravel()).reshape(table.shape)


def _fitted(truth: Floats, *, one: int | None, two: int, noise: float, stream: ldp.KeyedStream) -> Floats:
    """Table of HDG, or of TDG without one-way grids: near equal shares, and fitting its grids.

    Notes
    -----
    All grids of an attribute are made to agree on its shares in `two` parts, by inverse variances: so the
    other four pairs of each of both attributes help. Then negative shares go, and updates fit the grids.
    """
    pair = _grouped(truth, two, two) + sqrt(noise) * _normal(stream, two, two)
    shapes = [] if one is None else [(one, 1), (1, one)]
    ways = [_grouped(truth, *shape) + sqrt(noise) * _normal(stream, *shape) for shape in shapes]
    for axis, shape in enumerate([(two, 1), (1, two)]):
        others = _grouped(truth, *shape) + sqrt(noise * two / 4) * _normal(stream, *shape)
        own = pair.sum(axis=1 - axis, keepdims=True)
        told, variances = [own, others], [two, two / 4]
        if one is not None:
            told.append(ways[axis].reshape(two, -1).sum(axis=1).reshape(shape))
            variances.append(one / two)
        agreed = np.average(told, axis=0, weights=1 / np.array(variances))
        pair = pair + (agreed - own) / two
        if one is not None:
            ways[axis] = ways[axis] + np.repeat((agreed - told[-1]) * two / one, one // two, axis=axis)
    grids = [_none_negative(each) for each in (*ways, pair)]
    table = np.full((C, C), 1 / C**2)
    for _ in range(50):
        for grid in grids:
            now = _grouped(table, *grid.shape)
            ratio = np.divide(grid, now, out=np.zeros_like(now), where=now > 0)
            table = table * np.kron(ratio, np.ones((C // grid.shape[0], C // grid.shape[1])))
    return table


def _grouped(table: Floats, rows: int, columns: int) -> Floats:
    return table.reshape(rows, C // rows, columns, C // columns).sum(axis=(1, 3))


def _spread(groups: Floats) -> Floats:
    side = C // len(groups)
    return np.kron(groups, np.ones((side, side))) / side**2


def _gaussian(stream: ldp.KeyedStream) -> Floats:
    """Two normal attributes with correlation 0.8, in 64 equal parts of six deviations."""
    one, other = _normal(stream, 2, N_HDG)
    places = np.clip(((np.stack([one, 0.8 * one + 0.6 * other]) + 3) / 6 * C).astype(int), 0, C - 1)
    return np.bincount(places[0] * C + places[1], minlength=C * C).reshape(C, C) / N_HDG


def _zipf(stream: ldp.KeyedStream) -> Floats:
    """Two attributes with Zipf's law, of which half of the people have the same value twice."""
    shares = np.cumsum(1 / np.arange(1, C + 1) ** 1.1)
    one, other = np.searchsorted(shares / shares[-1], _uniform(stream, 2, N_HDG))
    other = np.where(_uniform(stream, N_HDG) < 0.5, one, other)
    return np.bincount(one * C + other, minlength=C * C).reshape(C, C) / N_HDG


def _uniform(stream: ldp.KeyedStream, *shape: int) -> Floats:
    words = stream.words(int(np.prod(shape))) >> np.uint64(11)
    return ((words + 0.5) * 2.0**-53).reshape(shape)


def _normal(stream: ldp.KeyedStream, *shape: int) -> Floats:
    """Standard normal numbers (Box and Muller)."""
    length, turn = _uniform(stream, 2, *shape)
    return np.asarray(np.sqrt(-2 * np.log(length)) * np.cos(2 * np.pi * turn))


def oracle_lines() -> Iterator[str]:
    """Reports times mean squared error of values that no one has, 407 values."""
    yield "| protocol, 407 values | epsilon 1 | 2 | 3 |\n|--|--|--|--|"
    channels: dict[str, Callable[..., Any]] = {
        "projective response": ldp.projective_channel,
        "subset selection": ldp.subset_channel,
        "OLH": ldp.olh_channel,
    }
    for name, channel in channels.items():
        found = [_squared(channel(epsilon=Fraction(e), domain_size=407)) for e in (1, 2, 3)]
        yield f"| {name} | " + " | ".join(f"{each:.3f}" for each in found) + " |"
    name, shown = "Hadamard response of pure-ldp", "not installed | |"
    if importlib.util.find_spec("pure_ldp"):
        shown = " | ".join(f"{pure_ldp_error(epsilon=e, domain_size=407):.3f}" for e in (1, 2, 3)) + " |"
    yield f"| {name} | {shown}"


def _squared(channel: Any) -> float:
    n, found = 20_000, []
    for key in range(20):
        pseudonyms, prf = np.arange(n, dtype=np.uint64), ldp.KeyedPrf(key.to_bytes(16, "big"))
        counts = counts_of(np.zeros(n, np.int32), pseudonyms, prf=prf, channel=channel)
        frequency = (counts[1:] / n - float(channel.q)) / float(channel.p - channel.q)
        found.append(n * np.mean(frequency**2))
    return float(np.mean(found))


def speed_lines(n: int) -> Iterator[str]:
    """Reports a second of one core, and time to decode."""
    values = np.arange(n, dtype=np.int32) % 444
    pseudonyms = np.arange(n, dtype=np.uint64)
    for size in (494, 3844):
        channel = ldp.projective_channel(epsilon=Fraction(1), domain_size=size)
        fields: Any = {"pseudonyms": pseudonyms, "prf": ldp.KeyedPrf(bytes(16)), "channel": channel}
        fields |= {"indicator": 0, "plan_version": 1}
        best = _best(lambda fields=fields: ldp.oracle_answers(values, **fields))
        codes = np.arange(channel.n_codes) % 17
        decode = _best(lambda channel=channel, codes=codes: value_counts(codes, channel=channel))
        space = f"PG({channel.dimension - 1}, {channel.prime})"
        yield f"{size} values, {space}: {n / best / 1e6:.1f} million/s, decoded: {1000 * decode:.1f} ms"


def _best(run: Callable[[], object]) -> float:
    """Least processor seconds of five runs after one to warm up."""
    run()
    found = []
    for _ in range(5):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


if __name__ == "__main__":
    sys.exit(main())
