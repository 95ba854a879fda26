"""Frequent items of sets: SVIM and LDPMiner as published, and one sampled item with projective response.

Wang, Li, Jha, *Locally Differentially Private Frequent Itemset Mining*, S&P 2018, claim that SVIM finds more
of the most frequent items than LDPMiner (Qin et al., CCS 2016), and that GRR is better on d items below
l (4 l - 1) e^eps + 1. Sets are made up (Zipf's law); reports have the noise of their protocol, as normal
numbers. `score` is the published one: found items weigh by their rank (NCR).

    python -m benchmarks.itemsets --runs 10
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from math import exp, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.crosstab import _normal, _uniform

N: Final = 500_000
D: Final = 1_000
MOST: Final = 10  # items that a person draws, some of them twice
TOP: Final = 32
ZIPF: Final = 1.2
L: Final = 6  # of ours: items of a set that count in full
EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)

Floats = NDArray[np.float64]
Sets = NDArray[np.int64]  # shape (people, MOST); -1 = no item
Finder = Callable[[Sets, float, ldp.KeyedStream], Floats]


def main() -> int:
    """Print scores and where the published switch is right; 0 if SVIM beats LDPMiner everywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="keys of each setting")
    found = scores(parser.parse_args().runs)
    for line in (*_lines(found), "", *switch_lines()):
        sys.stdout.write(line + "\n")
    return 0 if all(found["SVIM", e] >= found["LDPMiner", e] for e in EPSILONS) else 1


def scores(runs: int, *, n: int = N) -> dict[tuple[str, float], float]:
    """Mean score of each way to find the most frequent items, by epsilon."""
    found = {}
    for epsilon in EPSILONS:
        rows = []
        for run in range(runs):
            stream = ldp.KeyedStream(run.to_bytes(16, "big"))
            sets = made_up_sets(stream, n=n)
            truth = np.bincount(sets[sets >= 0], minlength=D)
            rows.append([score(truth, find(sets, epsilon, stream)) for find in WAYS.values()])
        found |= {(name, epsilon): mean for name, mean in zip(WAYS, np.mean(rows, axis=0), strict=True)}
    return found


def score(truth: NDArray[np.int64], estimates: Floats) -> float:
    """Normalised cumulative rank of the TOP items that are found; in [0, 1]."""
    weights = np.zeros(D)
    weights[np.argsort(-truth, kind="stable")[:TOP]] = np.arange(TOP, 0, -1)
    return float(weights[np.argsort(-estimates, kind="stable")[:TOP]].sum() / weights.sum())


def made_up_sets(stream: ldp.KeyedStream, *, n: int) -> Sets:
    """Sets of 1 to MOST items, each once."""
    shares = np.cumsum(1 / np.arange(1, D + 1) ** ZIPF)
    items = np.sort(np.searchsorted(shares / shares[-1], _uniform(stream, n, MOST)), axis=1)
    n_drawn = stream.uniform_int(n, 1, MOST + 1)
    items[np.arange(MOST) >= n_drawn[:, np.newaxis]] = -1
    items = np.sort(items, axis=1)
    items[:, 1:][items[:, 1:] == items[:, :-1]] = -1
    return items


def sampled(sets: Sets, stream: ldp.KeyedStream, *, most: int) -> NDArray[np.int64]:
    """Count how often each item is the one of max(size, most) that a person draws; the rest are dummies."""
    sizes = (sets >= 0).sum(axis=1)
    place = np.floor(_uniform(stream, len(sets)) * np.maximum(sizes, most)).astype(np.int64)
    ordered = -np.sort(-sets, axis=1)  # items first
    has_item = place < sizes
    drawn = ordered[np.flatnonzero(has_item), place[has_item]]
    return np.bincount(drawn, minlength=D)


def grr_variance(epsilon: float, *, k: int, most: int = 1) -> float:
    """Variance at frequency 0 of GRR on k items and `most` dummies, amplified by drawing one of `most`."""
    e = most * (exp(epsilon) - 1) + 1
    return (e + k + most - 2) / (e - 1) ** 2


def hash_variance(epsilon: float) -> float:
    """Variance at frequency 0 of OLH; of projective response within 2%."""
    return 4 * exp(epsilon) / (exp(epsilon) - 1) ** 2


def _padded(sets: Sets, epsilon: float, stream: ldp.KeyedStream, *, most: int, items: Sets) -> Floats:
    """PSFO: people with each of `items`, by the better of amplified GRR and OLH."""
    kept = np.where(np.isin(sets, items), sets, -1)
    variance = min(grr_variance(epsilon, k=len(items), most=most), hash_variance(epsilon))
    found = np.full(D, -np.inf)
    noise = _normal(stream, len(items)) * (len(sets) * variance) ** 0.5
    found[items] = most * (sampled(kept, stream, most=most)[items] + noise)
    return found


def svim(sets: Sets, epsilon: float, stream: ldp.KeyedStream) -> Floats:
    """Half of the people for candidates, a tenth for the size of their sets, the rest for estimates."""
    ends = int(0.5 * len(sets)), int(0.6 * len(sets))
    first = _padded(sets[: ends[0]], epsilon, stream, most=1, items=np.arange(D))
    candidates = np.sort(np.argsort(-first, kind="stable")[: 2 * TOP])
    sizes = np.isin(sets[ends[0] : ends[1]], candidates).sum(axis=1)
    counts = (
        np.bincount(sizes, minlength=MOST + 1)
        + _normal(stream, MOST + 1) * (sizes.size * hash_variance(epsilon)) ** 0.5
    )
    reached = np.cumsum(np.maximum(counts[1:], 0)) / max(np.maximum(counts[1:], 0).sum(), 1)
    most = int(np.argmax(reached >= 0.9)) + 1
    return _padded(sets[ends[1] :], epsilon, stream, most=most, items=candidates)


def ldp_miner(sets: Sets, epsilon: float, stream: ldp.KeyedStream) -> Floats:
    """Half of epsilon for candidates (succinct histogram), half for estimates (RAPPOR), by everyone."""
    most, half = int(np.quantile((sets >= 0).sum(axis=1), 0.9)), exp(epsilon / 2)
    noise = _normal(stream, D) * (len(sets) * ((half + 1) / (half - 1)) ** 2) ** 0.5
    first = sampled(sets, stream, most=most) + noise
    candidates = np.sort(np.argsort(-first, kind="stable")[: 2 * TOP])
    kept = np.where(np.isin(sets, candidates), sets, -1)
    root = exp(epsilon / 4)
    noise = _normal(stream, candidates.size) * (len(sets) * root / (root - 1) ** 2) ** 0.5
    found = np.full(D, -np.inf)
    found[candidates] = most * (sampled(kept, stream, most=most)[candidates] + noise)
    return found


def one_item(sets: Sets, epsilon: float, stream: ldp.KeyedStream) -> Floats:
    """Ours: everyone draws one item of L, and reports it by projective response with all of epsilon."""
    noise = _normal(stream, D) * (len(sets) * 1.02 * hash_variance(epsilon)) ** 0.5
    return L * (sampled(sets, stream, most=L) + noise)


WAYS: Final[dict[str, Finder]] = {"SVIM": svim, "LDPMiner": ldp_miner, "one item of 6, PGR": one_item}


def _lines(found: dict[tuple[str, float], float]) -> Iterator[str]:
    yield f"| score of {TOP} items, epsilon | " + " | ".join(map(str, EPSILONS)) + " |"
    yield "|--" * (1 + len(EPSILONS)) + "|"
    for name in WAYS:
        yield f"| {name} | " + " | ".join(f"{found[name, e]:.3f}" for e in EPSILONS) + " |"


def wrong_switches(most: int, epsilon: float) -> tuple[int, int]:
    """Numbers of items for which the published switch takes the worse protocol, and the exact one does."""
    e = exp(epsilon)
    published, exact = most * (4 * most - 1) * e + 1, most * (4 * most - 1) * e + most + 1
    wrong = [0, 0]
    for k in range(2, int(2 * exact)):
        # k counts the dummies of the paper, one for each of `most`.
        is_better = grr_variance(epsilon, k=k - most, most=most) < hash_variance(epsilon)
        wrong[0] += (k < published) != is_better
        wrong[1] += (k < exact) != is_better
    return wrong[0], wrong[1]


def switch_lines() -> Iterator[str]:
    """Published switch against the variances."""
    yield "| l, epsilon | wrong by the published switch | by l (4l - 1) e^eps + l + 1 |\n|--|--|--|"
    for most in (1, 3, 6):
        for epsilon in (1.0, log(9)):
            published, exact = wrong_switches(most, epsilon)
            yield f"| {most}, {epsilon:.2f} | {published} | {exact} |"


if __name__ == "__main__":
    sys.exit(main())
