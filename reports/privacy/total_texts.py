"""Why the epsilon of all of a person's answers is what it is, and what it leaves out, in a few sentences."""

from collections.abc import Iterator

from django.utils.translation import gettext, ngettext

from ldp import Certificate, IndicatorCertificate, PlanSpec
from ldp.privacy.slot_losses import certify_slots
from reports.base import formats
from reports.privacy.composition import losses_of
from reports.privacy.statement.document import certified
from reports.privacy.statement.slots import one_in
from reports.studies.plan_models import Plan


def total_words(plan: Plan) -> str:
    """Explain the epsilon of a profile by the answers that it adds up, and name other losses."""
    spec, certificate = certified(plan)
    total = _sum_words(plan, spec, certificate)
    return " ".join(filter(None, (total, window_words(spec, certificate), *_further(plan, spec))))


def _sum_words(plan: Plan, spec: PlanSpec, certificate: Certificate) -> str:
    entries = certificate.indicators
    total = gettext("The total privacy loss for all of one person's answers is at most epsilon %(total)s") % {
        "total": formats.epsilon(certificate.epsilon_profile)
    }
    if spec.has_fakes:
        return gettext(
            "%(total)s, because each person sends a real answer on one indicator only; their other reports "
            "are random."
        ) % {"total": total}
    if not spec.is_sampled:
        added = " + ".join(_product(each) for each in entries)
        return gettext("%(total)s. This limit is the sum of the epsilons of all answers: %(sum)s.") % {
            "total": total,
            "sum": added,
        }
    position = max(range(spec.d), key=lambda place: entries[place].epsilon_profile)
    asked, largest = spec.indicators[position], entries[position]
    each = largest.epsilon
    if spec.is_hashed(position):
        each = largest.epsilon_attribute
        text = ngettext(
            "%(total)s. This limit covers all reports on “%(name)s”. Their values are in %(n)d set of "
            "categories, with an epsilon of %(each)s.",
            "%(total)s. This limit covers all reports on “%(name)s”. Their values are in %(n)d sets of "
            "categories, each with an epsilon of at most %(each)s.",
            largest.n_values,
        )
    elif spec.is_renewed(position):
        each = largest.epsilon_attribute
        text = gettext(
            "%(total)s. This limit covers the reports on “%(name)s” of all days, which add new noise to one "
            "kept answer."
        )
    elif (asked.scale is not None or spec.has_question(position)) and largest.n_values > 1:
        text = gettext(
            "%(total)s. This limit is the sum of the epsilons of at most %(n)d different answers for "
            "“%(name)s”, each with an epsilon of %(each)s."
        )
    else:
        text = ngettext(
            "%(total)s. This limit covers %(n)d answer for “%(name)s”, with an epsilon of %(each)s.",
            "%(total)s. This limit is the sum of the epsilons of %(n)d daily answers for “%(name)s”, each "
            "with an epsilon of %(each)s.",
            largest.n_values,
        )
    name = plan.study.indicators.get(slug=asked.slug).shown_name
    return text % {
        "total": total, "n": largest.n_values, "each": formats.epsilon(each), "name": name,
    }  # fmt: skip


def _further(plan: Plan, spec: PlanSpec) -> Iterator[str]:
    """Losses that the total of the answers does not include: time slots and places."""
    if spec.location is not None:
        yield gettext(
            "This limit does not include places on maps. Imagine two possible histories of where a person "
            "was, with places 1 km apart on each day. For telling them apart, epsilon is at most %(epsilon)s."
        ) % {"epsilon": formats.epsilon(losses_of(spec, voided_days=plan.voided_days).location)}
    if spec.slots is None:
        return
    slots = certify_slots(spec)
    if slots is None:
        yield gettext("This limit does not include counts by time slot, which are exact.")
        return
    yield gettext(
        "This limit does not include counts by time slot, which have separate noise. For the whole study, "
        "epsilon is at most %(absent)s for whether a person was present, and at most %(moved)s for when and "
        "where. Both hold except with a probability of one in %(delta)s."
    ) % {
        "absent": formats.epsilon(slots.study.absent.epsilon),
        "moved": formats.epsilon(slots.study.moved.epsilon),
        "delta": one_in(slots.noise),
    }


def window_words(spec: PlanSpec, certificate: Certificate) -> str:
    """State the limit for the days of a window; empty in a plan without streams."""
    if certificate.epsilon_window is None:
        return ""
    values = {"window": spec.window_days, "epsilon": formats.epsilon(certificate.epsilon_window)}
    if spec.window_days == 1:
        return gettext("For the answers of any single day, the limit is epsilon %(epsilon)s.") % values
    return (
        gettext("For the answers of any %(window)d consecutive days, the limit is epsilon %(epsilon)s.")
        % values
    )


def _product(entry: IndicatorCertificate) -> str:
    """Write an epsilon once or as a product."""
    one = formats.epsilon(entry.epsilon)
    return one if entry.n_values == 1 else f"{entry.n_values} \u00d7 {one}"
