"""Run the same jobs with other libraries, used as their authors show, and in plain NumPy.

multi-freq-ldpy: a call per subscriber of the client, a list of reports, the aggregator of a solution.
pure-ldp has no solution for several indicators: a client and a server for each, one picked per subscriber.
NumPy: vectorised, with bits of the operating system; no one keeps an answer.
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.jobs import DOMAIN_SIZES, EPSILON, EPSILON_1, Counts, Subscribers, grr_channels

D: Final = len(DOMAIN_SIZES)
_SIZES: Final = list(DOMAIN_SIZES)

Peer = Callable[[Subscribers], Any]
Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Jobs by name; one that loops over subscribers is timed with few of them."""

    name: str
    jobs: Mapping[str, Peer]
    loops: bool


def libraries() -> list[Library]:
    """Return the libraries that are installed."""
    found = []
    if importlib.util.find_spec("multi_freq_ldpy"):
        name = f"multi-freq-ldpy {version('multi-freq-ldpy')}"
        found.append(Library(name=name, jobs=_multi_freq_ldpy(), loops=True))
    if importlib.util.find_spec("pure_ldp"):
        name = f"pure-ldp {version('pure-ldp')}"
        found.append(Library(name=name, jobs={"Smp[GRR]": _pure_ldp()}, loops=True))
    vectorised = {"Smp[GRR]": numpy_smp_grr, "Spl[GRR]": numpy_spl_grr}
    return [*found, Library(name=f"NumPy {np.__version__}", jobs=vectorised, loops=False)]


def numpy_smp_grr(people: Subscribers) -> Counts:
    """One indicator each."""
    entropy = ldp.SystemEntropy()
    asked = entropy.words(people.pseudonyms.size) % np.uint64(D)
    rows = [np.flatnonzero(asked == indicator) for indicator in range(D)]
    truths = [column[picked] for column, picked in zip(people.columns, rows, strict=True)]
    return _numpy_grr(truths, entropy, epsilon=EPSILON)


def numpy_spl_grr(people: Subscribers) -> Counts:
    """All indicators, with a sixth of epsilon each."""
    return _numpy_grr(list(people.columns), ldp.SystemEntropy(), epsilon=EPSILON / D)


def _numpy_grr(truths: list[Rows], entropy: ldp.SystemEntropy, *, epsilon: Fraction) -> Counts:
    counts = []
    for truth, channel in zip(truths, grr_channels(epsilon), strict=True):
        k = channel.domain_size
        other = (entropy.words(truth.size) % np.uint64(k - 1)).astype(np.int32)
        other += other >= truth
        answers = np.where(entropy.words(truth.size) < np.uint64(channel.threshold), truth, other)
        counts.append(np.bincount(answers, minlength=k))
    return counts


def _multi_freq_ldpy() -> Mapping[str, Peer]:
    from multi_freq_ldpy.long_mdim_freq_est import L_SMP_Solution as two_rounds
    from multi_freq_ldpy.mdim_freq_est import RSpFD_solution as rsfd
    from multi_freq_ldpy.mdim_freq_est import SMP_solution as smp
    from multi_freq_ldpy.mdim_freq_est import SPL_solution as spl

    one, both = (float(EPSILON),), (float(EPSILON), float(EPSILON_1))

    def job(client: Any, aggregator: Any, epsilons: tuple[float, ...], *, is_unary: bool = False) -> Peer:
        def run(people: Subscribers) -> Any:
            reports = [client(row, _SIZES, D, *epsilons) for row in _rows(people)]
            return aggregator(reports, *([] if is_unary else [_SIZES]), D, *epsilons)

        return run

    return {
        "Smp[GRR]": job(smp.SMP_GRR_Client, smp.SMP_GRR_Aggregator_MI, one),
        "Spl[GRR]": job(spl.SPL_GRR_Client, spl.SPL_GRR_Aggregator_MI, one),
        "RS+FD[GRR]": job(rsfd.RSpFD_GRR_Client, rsfd.RSpFD_GRR_Aggregator_MI, one),
        "RS+FD[OUE-z]": job(rsfd.RSpFD_UE_zero_Client, rsfd.RSpFD_UE_zero_Aggregator_MI, one),
        "Smp[L-OSUE]": job(
            two_rounds.SMP_L_OSUE_Client, two_rounds.SMP_L_OSUE_Aggregator_MI, both, is_unary=True
        ),
        "Smp[ALLOMFREE]": job(two_rounds.SMP_L_ADP_Client, two_rounds.SMP_L_ADP_Aggregator_MI, both),
    }


def _pure_ldp() -> Peer:
    encoding = _direct_encoding()

    def run(people: Subscribers) -> list[NDArray[np.float64]]:
        same = {"index_mapper": lambda value: value}  # by default values begin at 1
        clients = [encoding.DEClient(float(EPSILON), k, **same) for k in DOMAIN_SIZES]
        servers = [encoding.DEServer(float(EPSILON), k, **same) for k in DOMAIN_SIZES]
        asked = (ldp.SystemEntropy().words(people.pseudonyms.size) % np.uint64(D)).tolist()
        for row, indicator in zip(_rows(people), asked, strict=True):
            servers[indicator].aggregate(clients[indicator].privatise(row[indicator]))
        return [
            server.estimate_all(range(k), suppress_warnings=True)
            for server, k in zip(servers, DOMAIN_SIZES, strict=True)
        ]

    return run


def pure_ldp_error(*, epsilon: int, domain_size: int, n: int = 20_000) -> float:
    """Reports times mean squared error of pure-ldp's Hadamard response, of values that no one has.

    Its OLH does not work with releases of xxhash since 3.0.
    """
    _direct_encoding()
    same: Any = {"index_mapper": lambda value: value}
    response = importlib.import_module("pure_ldp.frequency_oracles.hadamard_response")
    server = response.HadamardResponseServer(epsilon, domain_size, **same)
    client = response.HadamardResponseClient(epsilon, domain_size, server.get_hash_funcs(), **same)
    for _ in range(n):
        server.aggregate(client.privatise(0))
    estimates = [server.estimate(value, suppress_warnings=True) / n for value in range(1, domain_size)]
    return float(n * np.mean(np.square(estimates)))


def _direct_encoding() -> ModuleType:
    """Import GRR alone: the package around it imports two large libraries that pure-ldp does not require."""
    package = ModuleType("pure_ldp.frequency_oracles")
    found = importlib.util.find_spec("pure_ldp")
    assert found is not None and found.origin is not None  # noqa: S101
    package.__path__ = [str(Path(found.origin).parent / "frequency_oracles")]
    sys.modules.setdefault(package.__name__, package)
    return importlib.import_module("pure_ldp.frequency_oracles.direct_encoding")


def _rows(people: Subscribers) -> Rows:
    """A row per subscriber, as from a table."""
    return np.stack(people.columns, axis=1)
