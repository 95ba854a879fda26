"""Compare what waits with earlier reports: no two may differ by fewer than `min_publication` subscribers.

Undoing a day can bring reports close to earlier ones. If its file is sent again with one more person, the new
reports differ from those before the undo by that person alone. If nothing is taken back this cannot happen:
everyone who changes differs from all that was published of them. Otherwise this module compares totals; the
vault keeps every publication.
"""

from collections.abc import Collection

import numpy as np

from ldp.estimation.tallies import Counts, Delta
from ldp.estimation.unions import all_unions
from ldp.privacy.plans import PlanSpec
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import OutboxDelta, VaultPublication
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.studies import OpenStudy


def is_enough(study: OpenStudy, row: VaultStudy, delta: Delta, parts: Collection[OutboxDelta]) -> bool:
    """Return whether `min_publication` allows to publish what waits.

    Parameters
    ----------
    row : the study as it was when `parts` waited
    delta : the sum of `parts`
    """
    least = max(study.definition.min_publication, 1)
    subscribers = sum(part.subscribers for part in parts)
    # Those of them who stay differ from all reports since the last undo: nothing else is ever taken back.
    has_grown = subscribers - sum(part.opted_out for part in parts) >= least
    if subscribers < least or (has_grown and not row.undone_before):
        return subscribers >= least
    return _is_far(study, row, delta, least=least, compared=row.undone_before if has_grown else None)


def _is_far(study: OpenStudy, row: VaultStudy, delta: Delta, *, least: int, compared: int | None) -> bool:
    """Return whether totals with `delta` are far from those of each earlier publication, or the same.

    Parameters
    ----------
    compared : compare with the publications before this number; None = with all but the last, of which
        subscribers are counted
    """
    undone = Batch.objects.filter(study=row, kind=Batch.Kind.VOID_DAY).values_list("day", flat=True)
    lasting = [day for day in range(1, study.plan.days + 1) if day not in set(undone)]
    difference = delta + Delta.zero(study.plan)
    of_totals = VaultPublication.objects.filter(study=row, slots_through=None)
    for publication in of_totals.order_by("-number").iterator(chunk_size=16):
        difference.add(Delta.unpack(bytes(publication.delta)))
        if difference.visitors[:, lasting].sum(axis=0).max(initial=0) >= least:
            # No one undoes these days: anyone who came on one since this state is in no older state either.
            return True
        is_compared = compared is None or publication.number <= compared
        if is_compared and 0 < fewest_subscribers(difference, plan=study.plan) < least:
            return False
    return True


def fewest_subscribers(difference: Delta, *, plan: PlanSpec) -> int:
    """Return a lower bound of the number of subscribers who make up a difference of totals; 0 if it is zero.

    Notes
    -----
    In a window that ends with the study a subscriber counts in one gap cell at most, that of the first day
    there. One subscriber who changes adds at most one to these cells and takes at most one from them. A code
    counts for one value; reports with a bit per value are bounded value by value. In the further tallies of
    presence a subscriber counts once a day.
    """
    if difference.is_zero:
        return 0
    of_each = []
    for index, (counts, n_reports) in enumerate(zip(difference.counts, difference.n_reports, strict=True)):
        # The last tally may be of places. A block of a class counts reports once more, in its last row.
        has_bits = index < plan.d and (plan.is_unary(index) or bool(plan.classes))
        of_each.append(max(_most(each) for each in (n_reports, *(counts if has_bits else [counts]))))
    of_answers, of_places = of_each[: plan.d], of_each[plan.d :]
    # If each subscriber answers one indicator, different indicators have different subscribers.
    answers = sum(of_answers) if plan.is_sampled else max(of_answers, default=0)
    of_stays = (int(np.maximum(sign * difference.stays, 0).sum(axis=1).max(initial=0)) for sign in (1, -1))
    return max(1, _most(difference.visitors), *of_stays, *of_places, answers)


def _most(counts: Counts) -> int:
    """Return the most that is added, or taken away, in a window that ends with the study."""
    most = 0
    if counts.shape[-2] == 1:  # each event counts once
        return max(int(np.maximum(sign * counts, 0).sum()) for sign in (1, -1))
    for sign in (1, -1):
        cells = np.maximum(sign * counts, 0)
        cells = cells.sum(axis=0) if cells.ndim == 3 else cells
        most = max(most, int(all_unions(cells)[1:, -1].max()))
    return most
