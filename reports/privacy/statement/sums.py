"""The statement's part on sums: what their readers learn less than from single reports, where that holds."""

from fractions import Fraction
from typing import Any

from django.utils.translation import gettext

from ldp import PlanSpec
from ldp.privacy.shuffling import SumsCertificate, certify_sums
from ldp.protocols.channels import exact_text
from ldp.protocols.projective_space import value_reports
from reports.base import formats
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.queries import counts_of, visitors_of
from reports.studies.tally_models import Tally, VisitorTally

THEOREM = "Feldman, McMillan, Talwar, FOCS 2021, theorem 3.1"


def sums_facts(study: Study, plan: Plan, spec: PlanSpec) -> dict[str, Any]:
    """Member `sums` of the statement; nothing where the theorem does not hold."""
    found = _certificate(study, plan, spec)
    if found is None:
        return {}
    return {
        "sums": {
            "theorem": THEOREM,
            "conditions": conditions(),
            "indicators": [
                {"slug": asked.slug, "n_reports": n, "epsilon": str(epsilon)}
                for asked, n, epsilon in zip(spec.indicators, found.n_reports, found.epsilons, strict=True)
            ],
            "epsilon_profile": str(found.epsilon_profile),
            "epsilon_attribute": str(found.epsilon_attribute),
            "delta": exact_text(found.delta),
            "delta_profile": exact_text(found.delta_profile),
        }
    }


def sums_words(facts: dict[str, Any]) -> list[str]:
    """Sentences for the page; none where the statement has no such part."""
    if "sums" not in facts:
        return []
    said = facts["sums"]
    promise = gettext(
        "Each report is hidden among the other reports in its sum. For anyone who sees only the sums of this "
        "study, and no individual report, epsilon is therefore %(profile)s for all of a person's values "
        "together, and %(attribute)s for one value. Both limits hold except with a probability of one in "
        "%(delta)s (delta)."
    ) % {
        "profile": formats.epsilon(Fraction(said["epsilon_profile"])),
        "attribute": formats.epsilon(Fraction(said["epsilon_attribute"])),
        "delta": formats.number(int(1 / Fraction(said["delta_profile"]))),
    }
    return [promise, said["conditions"]]


def conditions() -> str:
    """When it holds, and what it does not replace."""
    return gettext(
        "The privacy limits for the sums hold because the study has only one day, its plan has only one "
        "version, and its totals are exact and have changed only once. A study of several days has no such "
        "limits, because a person's report is counted on each day they are present. The limits apply only to "
        "this study, and do not cover the places that people report in it. They do not replace the epsilon "
        "of the guarantee: anyone who sees a single report can learn as much as that epsilon allows."
    )


def _certificate(study: Study, plan: Plan, spec: PlanSpec) -> SumsCertificate | None:
    # Where answers tell a group, a person hides only among those of the group; and of a value, among no one.
    is_told = any(asked.discloses for asked in spec.indicators)
    if spec.events or is_told or study.days != 1 or plan.voided_days:
        return None
    tallies = list(plan.tallies.order_by("indicator__position"))
    visitors = int(visitors_of(VisitorTally.objects.get(study=study))[0, 1])
    # The counts first: of two publications at the same time the second one is seen here.
    if visitors < study.small_cell or not _changed_once(study):
        return None  # pages do not show a number that is too small either
    n_reports = [_least_reports(each, spec, index) for index, each in enumerate(tallies)]
    return certify_sums(spec, n_reports=n_reports, n_visitors=visitors)


def _least_reports(tally: Tally, spec: PlanSpec, index: int) -> int:
    """Reports in a sum: of a number, those on the cut with the fewest."""
    codes = counts_of(tally.counts, shape=(spec.tally_sizes[index], 2, 2))
    n_reports = counts_of(tally.n_reports, shape=(2, 2))
    return int(value_reports(codes, n_reports, channel=spec.channel(index))[..., 0, 1].min())


def _changed_once(study: Study) -> bool:
    """Return whether earlier totals cannot be subtracted: one plan, and one publication since the begin."""
    changes = LedgerEntry.objects.filter(study=study.slug, kind=LedgerKind.PUBLICATION_APPLIED)
    # Rows are counted, too: the ledger may have begun after the study, or be another study's of that name.
    return study.plans.count() == study.publications.count() == changes.count() == 1
