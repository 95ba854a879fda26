"""Attack on the noise of a person's slots: what an observer can prove about the loss from many draws."""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.noise.slots import slot_noise_counts
from ldp.privacy.slots import SlotNoise, zcdp_epsilon
from ldp.research.audit import AuditResult
from ldp.research.binomial import clopper_pearson_low

Sums = NDArray[np.int64]
_THRESHOLDS: Final = 64  # that compete for the event


def attack_slots(noise: SlotNoise, *, slots: int, runs: int, confidence: float, prf: KeyedPrf) -> AuditResult:
    """Lower bound on the loss of some slots of a person, who is counted in all of them or in none.

    Parameters
    ----------
    noise : of each count
    slots : in [1, noise.slots_per_day]; 1 = a person's slot, slots_per_day = a person's day
    runs : persons per input, at least 4; each has other slots, and so other noise
    confidence : in (0, 1)
    prf : of the study; its noise is drawn as it is for a publication

    Raises
    ------
    LdpError : slots, runs or confidence is out of range

    Notes
    -----
    The observer sums the person's counts: of Gaussian noise, nothing else tells more. Half of the runs choose
    the sum from which on the person is likely there, the other half tests it: ln((low - delta) / high), with
    Clopper-Pearson bounds of its probability with and without the person, each at (1 + confidence) / 2.
    Source: Jagielski et al., NeurIPS 2020 (auditing).
    """
    if not 1 <= slots <= noise.slots_per_day:
        raise LdpError(f"slots must be in [1, {noise.slots_per_day}], got {slots}")
    if runs < 4:
        raise LdpError(f"runs must be >= 4, got {runs}")
    if not 0 < confidence < 1:
        raise LdpError(f"confidence must be in (0, 1), got {confidence}")
    cells, half, miss = slots * noise.levels, runs // 2, (1 - confidence) / 2
    absent, present = (_sums(noise, slots, runs, side, prf=prf) for side in (0, 1))
    candidates = np.unique(np.quantile(present[:half], np.linspace(0, 1, _THRESHOLDS), method="nearest"))
    event = max(
        candidates.tolist(),
        key=lambda least: _bound(absent[:half], present[:half], least, noise=noise, miss=miss),
    )
    return AuditResult(
        mechanism="slots",
        unit=f"person counted {cells} times: in {slots} slots at {noise.levels} levels",
        runs=runs,
        event=f"the sum of the counts is at least {event} above that without the person",
        epsilon_lower_bound=_bound(absent[half:], present[half:], event, noise=noise, miss=miss),
        confidence=confidence,
        epsilon_certified=zcdp_epsilon(noise.rho(slots=slots), delta=noise.delta),
    )


def _sums(noise: SlotNoise, slots: int, runs: int, side: int, *, prf: KeyedPrf) -> Sums:
    """Sum of the published counts of the person's cells, per run; counts of others are 0."""
    first = np.arange(side, 2 * runs, 2) * slots  # no run shares a slot with another one
    times = np.repeat(first[:, None] + np.arange(slots), noise.levels, axis=1)
    zones = np.tile(np.arange(noise.levels), runs * slots)
    drawn = slot_noise_counts(noise, prf=prf, slots=times.ravel(), zones=zones, plan_version=1)
    sums: Sums = (drawn.reshape(runs, -1) + side).sum(axis=1)
    return sums


def _bound(absent: Sums, present: Sums, least: int, *, noise: SlotNoise, miss: float) -> float:
    hits, false_hits = (int(np.count_nonzero(sums >= least)) for sums in (present, absent))
    low = clopper_pearson_low(hits, n=len(present), miss=miss) - float(noise.delta)
    high = 1 - clopper_pearson_low(len(absent) - false_hits, n=len(absent), miss=miss)
    return max(0.0, log(low / high)) if low > 0 else 0.0
