"""Explain the noise of reported places, in sentences."""

from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.privacy.statement.locations import LocationProtection, squares_words


def noise_words(protection: LocationProtection) -> list[str]:
    """Explain the noise, in sentences."""
    spec = protection.spec
    facts = {
        "mean": formats.number(protection.mean_shift_m),
        "radius": formats.number(float(protection.radius_m)),
        "most": formats.number(protection.radius_95_m),
        "odds": formats.odds(protection.epsilon_at_radius),
        "epsilon": formats.epsilon(spec.certified, decimals=6),
        "all": formats.odds(protection.epsilon_of_all),
    }
    several = ngettext(
        "A person reports at most %(n)d place.", "A person reports at most %(n)d different places.",
        protection.n_places,
    ) % {"n": protection.n_places}  # fmt: skip
    return [
        gettext(
            "A reported place lies %(mean)s m from the true one on average, and 95 of 100 lie within "
            "%(most)s m."
        )
        % facts,
        gettext(
            "One report changes the odds between two places that are %(radius)s m apart by at most %(odds)s "
            "times, whatever else is known except other reports of the same person; of places twice as far "
            "apart, by the square of that."
        )
        % facts,
        several
        + " "
        + gettext(
            "All of them seen together change the odds between two lives that repeat and change places on "
            "the same days, and whose places are %(radius)s m apart, by at most %(all)s times."
        )
        % facts,
        squares_words(protection),
        gettext("Epsilon is %(epsilon)s per metre; it is not part of the epsilon of answers.") % facts,
    ]
