"""The statement's part on presence by slot: what its noise hides, by unit, from the integers in use."""

from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from django.utils.translation import gettext, ngettext

from ldp import PlanSpec
from ldp.privacy.slot_losses import SlotCertificate, SlotLoss, SlotRow, certify_slots
from ldp.privacy.slots import SlotNoise, SlotSpec
from ldp.protocols.channels import exact_text
from reports.base import formats
from reports.studies.models import Study

NOISY, EXACT = "discrete-gaussian", "none"
_MICRO: Final = Decimal("0.000001")


def slots_facts(spec: PlanSpec, study: Study) -> dict[str, Any]:
    """Member `slots` of the statement; nothing without counts by slot. Exact numbers are strings."""
    if spec.slots is None:
        return {}
    certificate = certify_slots(spec)
    facts: dict[str, Any] = {
        "mechanism": EXACT if certificate is None else NOISY,
        "unit": unit_words(),
        "minutes": spec.slots.minutes,
        "hold_minutes": study.slots.hold_minutes,
        "slots_per_day": spec.slots.slots_per_day,
        "levels": spec.slots.levels,
        "noise": None if certificate is None else _noise(certificate.noise),
        "losses": [] if certificate is None else [_row(row) for row in certificate.rows],
        "with_presence": None if certificate is None else _with_presence(certificate),
    }
    return {"slots": facts}


def unit_words() -> str:
    """Describe the unit of the certificate of a day."""
    return gettext(
        "a person's time slots on one local day, including those carried over from the day before; only "
        "the first slots_per_day slots count"
    )


def slots_words(spec: PlanSpec, *, hold_minutes: int) -> list[str]:
    """Sentences for pages; none without counts by slot."""
    if spec.slots is None:
        return []
    certificate, limits = certify_slots(spec), slots_limits(spec).values()
    promise = [] if certificate is None else [_promise(certificate)]
    total = [] if certificate is None or certificate.epsilon is None else [_total(certificate)]
    return [_counted(spec.slots, hold_minutes=hold_minutes), *promise, *total, *limits]


def slots_table(spec: PlanSpec) -> list[dict[str, Any]]:
    """Losses by unit for pages: title, slots, and those of both histories; empty without noise."""
    certificate = certify_slots(spec)
    rows = () if certificate is None else certificate.rows
    return [{"title": unit_title(row), "row": row} for row in rows]


def slots_limits(spec: PlanSpec) -> dict[str, str]:
    """Return what the noise of the slots does not protect, by name; nothing without counts by slot."""
    if spec.slots is None:
        return {}
    if spec.slots.noise is None:
        return {
            "slots": gettext(
                "Presence by time slot is not protected: the counts by slot and zone are exact, and "
                "nothing limits what they reveal about when and where a person was."
            )
        }
    if spec.presence is None:
        return {
            "slots": gettext(
                "This study has no presence noise, so whether a person was present on a given day is "
                "not protected. The epsilon for time slots covers only the counts by time slot."
            )
        }
    return {}


def unit_title(row: SlotRow) -> str:
    """Name of the unit of a loss."""
    titles = {
        "slot": gettext("One time slot"),
        "day": gettext("One day"),
        "week": gettext("Seven days"),
        "study": gettext("The whole study"),
    }
    return titles[row.unit]


def _counted(slots: SlotSpec, *, hold_minutes: int) -> str:
    text = gettext(
        "The study counts the people in each zone, in time slots of %(minutes)s minutes. A person is counted "
        "in the zone where they were last seen, provided that they were seen during the slot or at most "
        "%(hold)s minutes before its end. Each count is transferred to the analyst zone once, when its slot "
        "is published."
    ) % {"minutes": slots.minutes, "hold": hold_minutes}
    if slots.levels == 1:
        return text
    more = ngettext(
        "A person counted in a zone is also counted in the larger zone that contains it.",
        "There are %(n)s levels of larger zones. At each level, a person counted in a zone is also "
        "counted in the larger zone that contains it.",
        slots.levels - 1,
    )
    return f"{text} {more % {'n': slots.levels - 1}}"


def _promise(certificate: SlotCertificate) -> str:
    noise, day = certificate.noise, certificate.day
    first = gettext(
        "Discrete Gaussian noise with a standard deviation of %(sd)s is added to each count. The noise "
        "protects a person's time slots on one local day, including slots carried over from the day before. "
        "Epsilon is %(epsilon)s for distinguishing the person's presence from their absence, except with a "
        "probability of one in %(delta)s (delta)."
    ) % {
        "sd": formats.decimal(float(noise.variance) ** 0.5, decimals=1),
        "epsilon": formats.epsilon(day.absent.epsilon),
        "delta": one_in(noise),
    }
    more = ngettext(
        "Only each person's first time slot of the day is counted.",
        "Only each person's first %(n)s time slots of the day are counted.",
        noise.slots_per_day,
    ) % {"n": noise.slots_per_day}
    return f"{first} {more}"


def _total(certificate: SlotCertificate) -> str:
    return gettext(
        "Together, the noise on time slots and the presence noise protect a person's presence in the whole "
        "study. Epsilon is %(epsilon)s for distinguishing the person's presence from their absence, and "
        "%(moved)s for distinguishing it from presence at other times and in other zones. Both values hold "
        "except with a probability of one in %(delta)s (delta)."
    ) % {
        "epsilon": formats.epsilon(certificate.epsilon or Decimal(0)),
        "moved": formats.epsilon(certificate.epsilon_moved or Decimal(0)),
        "delta": one_in(certificate.noise),
    }


def one_in(noise: SlotNoise) -> str:
    """N of a probability of one in N, rounded down."""
    return formats.number(int(1 / noise.delta))


def _noise(noise: SlotNoise) -> dict[str, str]:
    return {
        "variance": exact_text(noise.variance),
        "std_error": f"{Decimal(repr(round(float(noise.variance) ** 0.5, 6))):f}",
        "delta": exact_text(noise.delta),
    }


def _row(row: SlotRow) -> dict[str, Any]:
    return {"unit": row.unit, "slots": row.slots, "absent": _loss(row.absent), "moved": _loss(row.moved)}


def _loss(loss: SlotLoss) -> dict[str, str]:
    return {
        "rho": exact_text(loss.rho),
        "order": exact_text(loss.order),
        "epsilon": f"{loss.epsilon:f}",
        "epsilon_gaussian": f"{Decimal(loss.tight).quantize(_MICRO, ROUND_CEILING):f}",
    }


def _with_presence(certificate: SlotCertificate) -> dict[str, str] | None:
    names = ("epsilon", "epsilon_moved", "epsilon_replaced")
    if certificate.epsilon is None:
        return None
    return {name: f"{getattr(certificate, name):f}" for name in names}
