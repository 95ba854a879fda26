"""Clocks: leases of batches, signatures and expiry dates compare the clocks of several machines."""

from typing import Final

from mobility.operations.doctor.diagnosis import Diagnosis, error, fine, warning

WARN_S: Final = 5.0
ERROR_S: Final = 60.0  # half of the default lease of a batch: a worker could take what another one works on
ADVICE: Final = "run a time service (chrony, systemd-timesyncd) on every machine"


def compared(subject: str, *, theirs: float, before: float, after: float, whole_s: bool = False) -> Diagnosis:
    """Return the offset of another clock from this host's, read `before` and `after` the question.

    Parameters
    ----------
    theirs, before, after : seconds since 1970
    whole_s : whether the other side tells whole seconds only
    """
    latest = theirs + (1.0 if whole_s else 0.0)
    skew = max(before - latest, theirs - after, 0.0)
    if skew < WARN_S:
        return fine("clock_skewed", subject)
    make = error if skew >= ERROR_S else warning
    what = f"the clock is {skew:.0f} s {'ahead of' if theirs > after else 'behind'} this host's clock"
    return make("clock_skewed", what, ADVICE, subject=subject)
