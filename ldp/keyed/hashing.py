"""Local hashing (BLH, OLH) with keyed bits: one lasting report per subscriber, indicator and value."""

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import oracles
from ldp.kernels.entropy import ANSWER, HASH_SEED, HASH_VALUE, KeyedPrf, PlanFields, slices
from ldp.keyed.grr import check_values, draw, keyed_values
from ldp.protocols.hashing import HashChannel

_PUBLIC_HASH = KeyedPrf(b"ldp: public hash")  # the hash is no secret; AES only makes it uniform


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HashReports:
    """Reports of local hashing.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,); which hash each report uses
    cells : ndarray of uint16, shape (n,); sanitised cell, or NO_ANSWER
    """

    seeds: NDArray[np.uint64]
    cells: NDArray[np.uint16]


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HashChannel,
    **fields: Unpack[PlanFields],
) -> HashReports:
    """Seed and sanitised cell of each subscriber; the same arguments always give the same reports.

    Parameters, Raises : as of `grr.answers`

    Notes
    -----
    A changed value gets another seed and independent bits, even if both values fall into the same cell.
    Cost: three AES blocks per subscriber. Source: Wang et al., USENIX Security 2017.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    keyed = keyed_values(values)
    seeds = np.empty(values.shape[0], np.uint64)
    for part, words in prf.chunks(pseudonyms, **fields, purpose=HASH_SEED, values=keyed, counter=0):
        seeds[part] = words[:, 0]
    cells = hash_values(seeds, values=keyed, n_cells=channel.cells.domain_size).astype(np.int32)
    cells[values < 0] = -1
    sanitised = draw(
        cells,
        keyed=keyed,
        pseudonyms=pseudonyms,
        prf=prf,
        channel=channel.cells,
        counter=0,
        purpose=ANSWER,
        **fields,
    )
    return HashReports(seeds=seeds, cells=sanitised)


def hash_values(
    seeds: NDArray[np.uint64], *, values: int | NDArray[np.uint32], n_cells: int
) -> NDArray[np.uint64]:
    """Cell of a value, or of one value per seed, under the public hash of each seed.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
    values : int or ndarray of uint32, shape (n,); in [0, 2**24)
    n_cells : int; at least 1

    Returns
    -------
    ndarray of uint64, shape (n,); in [0, n_cells)

    Raises
    ------
    LdpError : n_cells < 1, or a value is out of range

    Notes
    -----
    AES-128 under a public key of (seed, value), reduced by rejection: as uniform, and as independent for
    different values, as AES is. Cost: one AES block each.
    """
    return _PUBLIC_HASH.below(
        seeds, bound=n_cells, purpose=HASH_VALUE, indicator=0, plan_version=0, value=values
    )


def count_support(reports: HashReports, *, channel: HashChannel) -> NDArray[np.int64]:
    """Reports that support each value: its hash is the report's cell.

    Returns
    -------
    ndarray of int64, shape (domain_size,)

    Raises
    ------
    LdpError : seeds and cells differ in number

    Notes
    -----
    Cost: n * domain_size AES blocks; memory does not grow with it.
    """
    if reports.seeds.shape != reports.cells.shape:
        raise LdpError(f"cells must have shape {reports.seeds.shape}, got {reports.cells.shape}")
    out = np.zeros(channel.domain_size, np.int64)
    for part in slices(reports.seeds.shape[0]):
        for value in range(channel.domain_size):
            cells = hash_values(reports.seeds[part], values=value, n_cells=channel.cells.domain_size)
            out[value] += oracles.count_equal(cells, reports.cells[part])
    return out
