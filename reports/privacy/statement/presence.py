"""The statement's part on presence noise: what hides whether a person was there, from the integers in use."""

from decimal import Decimal
from typing import Any

from django.utils.translation import gettext, ngettext

from ldp import PlanSpec
from ldp.privacy.accounting import PresenceCertificate, certify_presence
from ldp.privacy.presence import CountNoise
from ldp.protocols.channels import WORD, exact_text
from reports.base import formats
from reports.studies.models import Study
from reports.studies.texts import tallies_words

MECHANISM = "two-sided-geometric"


def presence_facts(spec: PlanSpec, study: Study) -> dict[str, Any] | None:
    """Plain values of the statement; exact numbers are strings. None where totals are exact."""
    certificate = certify_presence(spec)
    if certificate is None or spec.presence is None:
        return None
    return {
        "mechanism": MECHANISM,
        "unit": gettext(
            "a person's presence: the two data sets compared are identical, except that one includes an "
            "additional person, with all of that person's days and answers"
        ),
        "presence_epsilon": exact_text(spec.presence.epsilon),
        "days_per_person": spec.presence.max_days,
        "visitors": _noise(certificate.visitors),
        "answers": _noise(certificate.answers),
        "epsilon": str(certificate.epsilon),
        "epsilon_moved": str(certificate.epsilon_moved),
        "epsilon_replaced": str(certificate.epsilon_replaced),
        "nominal_epsilon": exact_text(certificate.nominal),
        "composition": gettext(
            "Visitor counts and answer counts each spend presence_epsilon, so the total privacy loss for "
            "presence is twice presence_epsilon. This total covers all days and all date ranges, including "
            "days that are closed later. epsilon_moved applies when a person is compared with the same "
            "person present on other days, with the same answers (one for each indicator). "
            "epsilon_replaced applies when a person is compared with a different person who has other days "
            "and other answers."
        ),
        "noisy_through": study.noisy_through,
    }


def presence_words(spec: PlanSpec) -> list[str]:
    """Sentences for the page; none where totals are exact."""
    certificate = certify_presence(spec)
    if certificate is None:
        return []
    return [_promise(certificate), _cost(certificate), _size(certificate)]


def _promise(certificate: PresenceCertificate) -> str:
    text = gettext(
        "A person's presence is protected with epsilon %(epsilon)s. Anything computed from the "
        "counts changes the odds that the person was present at all by a factor of at most %(odds)s. "
        "Every count of visitors and every count of answers has its own noise, drawn once when its "
        "day is closed. Counts of visitors and counts of answers each spend half of this epsilon."
    )
    return text % {
        "epsilon": formats.epsilon(certificate.epsilon),
        "odds": formats.odds(certificate.epsilon),
    }


def _cost(certificate: PresenceCertificate) -> str:
    text = ngettext(
        "To make this protection possible, each person is counted only on the first day they are present.",
        "To make this protection possible, each person is counted only on the first %(n)s days they are "
        "present.",
        certificate.max_days,
    ) % {"n": certificate.max_days}
    more = gettext(
        "Epsilon %(moved)s limits what others can learn about the days on which a person was "
        "present. This limit assumes that the person's answers would be the same on other days. "
        "Epsilon %(replaced)s limits what others can learn about which of two people was present. "
        "This limit applies even if the two people have different days and answers."
    )
    return f"{text} " + more % {
        "moved": formats.epsilon(certificate.epsilon_moved),
        "replaced": formats.epsilon(certificate.epsilon_replaced),
    }


def _size(certificate: PresenceCertificate) -> str:
    return gettext(
        "The noise has a standard deviation of %(visitors)s in each count of visitors, and of "
        "%(answers)s in each count of answers. Totals are sums of such counts. With days numbered "
        "from 1, the total for day t is the sum of t counts. The total for the range from day a to "
        "day b is the sum of a \u00d7 (b \u2212 a + 1) counts. All intervals account for this noise."
    ) % {
        "visitors": formats.decimal(certificate.visitors.channel.variance**0.5, decimals=1),
        "answers": formats.decimal(certificate.answers.channel.variance**0.5, decimals=1),
    }


def presence_limits(spec: PlanSpec) -> dict[str, str]:
    """Return the unprotected facts of presence, by name."""
    if spec.presence is not None:
        return {
            "closings": gettext(
                "Closing of days: anyone can see which days are closed, when they were closed, and when "
                "files were sent. The noise hides how many people the files contained."
            )
        }
    more = {}
    if spec.tallies:
        text = gettext(
            "Days and stays: for each day, the totals also contain exact counts for: %(names)s. These "
            "counts reveal more about who came back than the total numbers of visitors do. No epsilon "
            "limits what these counts reveal."
        )
        more["tallies"] = text % {"names": tallies_words(spec.tallies)}
    missing = gettext(
        "Missing values: a person without a value for an indicator sends no report on that indicator, "
        "neither a real one nor a made-up one. The number of people who send a report is published without "
        "noise."
    )
    if any(asked.parts for asked in spec.indicators):
        missing += " " + gettext(
            "In a joint indicator, a missing value is part of the combination of values and is protected "
            "along with the other values."
        )
    return {
        "presence": gettext(
            "Presence: visitor totals are exact counts for each day and each date range. Nothing "
            "hides whether a person was present, or on which days."
        ),
        "missing_values": missing,
        **more,
    }


def _noise(noise: CountNoise) -> dict[str, Any]:
    channel = noise.channel
    return {
        "digits": [str(threshold) for threshold in channel.digits],
        "tail": str(channel.tail),
        "threshold_out_of": str(WORD),
        "ratio": exact_text(channel.ratio),
        "epsilon_of_one": str(channel.epsilon),
        "counts_per_person": noise.sensitivity,
        "epsilon": str(noise.epsilon),
        "std_error_of_one": str(Decimal(repr(round(channel.variance**0.5, 6)))),
    }
