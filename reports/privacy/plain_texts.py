"""Privacy of shown indicators in three plain sentences: true answers, total loss, limits of protection."""

from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext, ngettext

from ldp import IndicatorCertificate, PlanSpec
from ldp.privacy.accounting import certify_presence
from ldp.privacy.slot_losses import certify_slots
from reports.base import formats
from reports.privacy.composition import losses_of
from reports.privacy.days_texts import repeated
from reports.privacy.statement.document import Protection, certified, protection_of
from reports.privacy.statement.slots import one_in, slots_limits
from reports.studies.plan_models import Plan
from reports.studies.queries import shown_names


def plain_privacy(plan: Plan, slugs: Collection[str]) -> dict[str, Any]:
    """Context of `privacy/_plain.html` for the indicators of a page; without any, for all of the study.

    Of several indicators, the example is one whose answers have the highest epsilon.
    """
    spec = plan.parsed
    of_plan = [asked.slug for asked in spec.indicators]
    shown = [slug for slug in of_plan if slug in slugs] or of_plan
    found = {slug: protection_of(plan, slug) for slug in shown}
    example = max(shown, key=lambda slug: found[slug].epsilon_answer)
    names = shown_names(plan.study)
    return {
        "study": plan.study,
        "protection": found[example],
        "protection_of": names[example] if len(shown) > 1 else "",
        "truth_words": _truth_words(found[example], name=names[example], has_classes=bool(spec.classes)),
        "loss_words": _loss_words(plan, shown, names=names),
        "open_words": _open_words(plan, shown, names=names),
        "other_losses": list(_other_losses(plan)),
    }


def _truth_words(protection: Protection, *, name: str, has_classes: bool) -> str:
    """Say how many answers are true; of classes, those of the one with the highest epsilon."""
    values = {"kept": protection.kept_of_100, "name": name}
    is_set = protection.is_unary and not protection.scale and not protection.has_question
    if protection.wave_words:
        text = gettext("About %(kept)s of 100 answers on “%(name)s” are near the true value.")
    elif protection.disclosed_of_100 is not None:
        text = gettext("About %(kept)s of 100 people with a sensitive category of “%(name)s” give it.")
    elif protection.tells_group:
        text = gettext(
            "At least about %(kept)s of 100 answers on “%(name)s” give or include the true category."
        )
    elif protection.has_fakes and is_set:
        text = gettext("About %(kept)s of 100 real answers on “%(name)s” include the true category.")
    elif protection.has_fakes:
        text = gettext("About %(kept)s of 100 real answers on “%(name)s” are true.")
    elif has_classes and is_set:
        text = gettext("At most about %(kept)s of 100 answers on “%(name)s” include the true category.")
    elif has_classes:
        text = gettext("At most about %(kept)s of 100 answers on “%(name)s” are true.")
    elif is_set:
        text = gettext("About %(kept)s of 100 answers on “%(name)s” include the true category.")
    else:
        text = gettext("About %(kept)s of 100 answers on “%(name)s” are true.")
    return " ".join((text % values, gettext("The figures are corrected for this noise.")))


def _loss_words(plan: Plan, shown: list[str], *, names: dict[str, str]) -> str:
    """Explain the epsilon of a person's answers, or an event's, to the indicators by what it adds up."""
    spec, certificate = certified(plan)
    total = formats.epsilon(certificate.epsilon_profile)
    if spec.has_fakes:
        return gettext(
            "The privacy loss (epsilon) of all reports of one person is at most %(total)s, because each "
            "person gives real answers on one indicator only; the other reports are random."
        ) % {"total": total}
    of_slug = {entry.slug: entry for entry in certificate.indicators}
    if not spec.is_sampled and len(shown) > 1:
        values = {"total": total, "sum": " + ".join(map(_product, certificate.indicators))}
        text = gettext(
            "The privacy loss (epsilon) of all answers of one person is at most %(total)s, the sum of their "
            "epsilons: %(sum)s."
        )
        if spec.events:
            text = gettext(
                "The privacy loss (epsilon) of all answers on one event is at most %(total)s, the sum of "
                "their epsilons: %(sum)s."
            )
        return text % values
    slug = max(shown, key=lambda each: of_slug[each].epsilon_profile)
    loss = formats.epsilon(of_slug[slug].epsilon_profile)
    if not spec.is_sampled and spec.d > 1:
        loss = gettext("%(loss)s (%(total)s with the other indicators)") % {"loss": loss, "total": total}
    if any(asked.discloses for asked in spec.indicators if asked.slug in shown):
        loss = gettext("%(loss)s for what is protected") % {"loss": loss}
    if spec.events:
        head = gettext("The privacy loss (epsilon) of an event's answer on “%(name)s” is at most %(loss)s")
    elif len({_terms(of_slug[each]) for each in shown}) == 1 < len(shown):
        head = gettext(
            "The privacy loss (epsilon) of one person's answers on any of these indicators is at most "
            "%(loss)s"
        )
    elif len(shown) > 1:
        head = gettext(
            "The privacy loss (epsilon) of one person's answers is highest on “%(name)s”, where it is at "
            "most %(loss)s"
        )
    else:
        head = gettext("The privacy loss (epsilon) of one person's answers on “%(name)s” is at most %(loss)s")
    return _because(spec, of_slug[slug], head=head % {"name": names[slug], "loss": loss})


def _because(spec: PlanSpec, entry: IndicatorCertificate, *, head: str) -> str:
    """Complete the sentence on the loss of an indicator by its answers."""
    position = spec.index(entry.slug)
    asked, n = spec.indicators[position], entry.n_values
    values = {"loss": head, "n": n, "each": formats.epsilon(entry.epsilon)}
    if spec.is_renewed(position):
        return gettext("%(loss)s, because the reports of all days add new noise to one kept answer.") % values
    if spec.events:
        return gettext("%(loss)s, because each event gives one answer.") % values
    if spec.is_hashed(position):
        values["each"] = formats.epsilon(entry.epsilon_attribute)
        return (
            ngettext(
                "%(loss)s, because the answers name %(n)d set of categories, with an epsilon of %(each)s.",
                "%(loss)s, because the answers name at most %(n)d sets of categories, with an epsilon of at "
                "most %(each)s each.",
                n,
            )
            % values
        )
    if n == 1:
        return gettext("%(loss)s, because each person gives one answer.") % values
    if (asked.scale is not None and not asked.is_wave) or spec.has_question(position):
        return (
            gettext(
                "%(loss)s, because each person gives at most %(n)d different answers of epsilon "
                "%(each)s each."
            )
            % values
        )
    return (
        gettext("%(loss)s, because each person gives at most %(n)d daily answers of epsilon %(each)s each.")
        % values
    )


def _open_words(plan: Plan, shown: list[str], *, names: dict[str, str]) -> str:
    """Say in one sentence whether presence is protected, and what is not."""
    spec = plan.parsed
    places = [spec.index(slug) for slug in shown]
    found = [
        *_unprotected_presence(spec),
        *_unprotected_values(spec, places, names=names),
        *_unprotected_changes(spec, places, voided_days=plan.voided_days),
    ]
    certificate = certify_presence(spec)
    if certificate is None:
        return gettext("Not protected: %(facts)s.") % {"facts": formats.listed(found)}
    values = {"epsilon": formats.epsilon(certificate.epsilon), "facts": formats.listed(found)}
    if not found:
        return (
            gettext(
                "Noise in the totals also protects whether a person was present, with an epsilon of "
                "%(epsilon)s."
            )
            % values
        )
    return (
        gettext(
            "Noise in the totals also protects whether a person was present, with an epsilon of %(epsilon)s, "
            "but not: %(facts)s."
        )
        % values
    )


def _unprotected_presence(spec: PlanSpec) -> Iterator[str]:
    if spec.events:
        yield gettext("whether and on which day an event took place, because totals are exact")
        if spec.max_events is None:
            yield gettext("all of a person's events together, because their epsilons add up without a limit")
        else:
            yield gettext("the number of a person's events")
    elif spec.presence is None:
        yield gettext("who was present and on which days, because visitor totals are exact")
    if spec.classes:
        yield gettext("the class of each person")


def _unprotected_values(spec: PlanSpec, places: list[int], *, names: dict[str, str]) -> Iterator[str]:
    for asked in (spec.indicators[place] for place in places):
        if asked.sensitive:
            yield gettext("categories of “%(name)s” that are not sensitive") % {"name": names[asked.slug]}
        if asked.regions:
            yield gettext("the group of each person's category of “%(name)s”") % {"name": names[asked.slug]}


def _unprotected_changes(spec: PlanSpec, places: list[int], *, voided_days: int) -> Iterator[str]:
    if set(places) & {*repeated(spec)}:
        yield gettext("whether a person's daily value changes from one day to the next")
    if voided_days and any(map(spec.has_new_noise, places)):
        yield gettext("whether a value changed between the two versions of a day that was undone")


def _other_losses(plan: Plan) -> Iterator[str]:
    """Losses beyond the answers that are explained: places on maps, events of a person, time slots."""
    spec = plan.parsed
    if spec.location is not None:
        yield gettext(
            "The epsilons above do not include places on maps. Imagine two possible histories of where a "
            "person was, with places 1 km apart on each day. For telling them apart, epsilon is at most "
            "%(epsilon)s."
        ) % {"epsilon": formats.epsilon(losses_of(spec, voided_days=plan.voided_days).location)}
    if spec.max_events is not None:
        yield gettext(
            "At most %(n)s events of a person are answered. For all of them together, epsilon is at most "
            "%(epsilon)s."
        ) % {
            "n": formats.number(spec.max_events),
            "epsilon": formats.epsilon(certified(plan)[1].epsilon_person or 0),
        }
    slots = certify_slots(spec)
    if slots is not None:
        yield gettext(
            "Counts by time slot have separate noise and a separate epsilon. For the whole study, it is "
            "at most %(absent)s for whether a person was in these counts, and at most %(moved)s for when and "
            "where. Both hold except with a probability of one in %(delta)s."
        ) % {
            "absent": formats.epsilon(slots.study.absent.epsilon),
            "moved": formats.epsilon(slots.study.moved.epsilon),
            "delta": one_in(slots.noise),
        }
    yield from slots_limits(spec).values()


def _terms(entry: IndicatorCertificate) -> tuple[Decimal, Decimal, int]:
    """Return what the epsilon of a person's answers to an indicator is made of."""
    return entry.epsilon_profile, entry.epsilon, entry.n_values


def _product(entry: IndicatorCertificate) -> str:
    """Write an epsilon once or as a product."""
    one = formats.epsilon(entry.epsilon)
    return one if entry.n_values == 1 else f"{entry.n_values} \u00d7 {one}"
