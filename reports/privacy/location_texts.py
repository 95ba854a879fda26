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
            "On average, a reported place is %(mean)s m from the true place; 95 of 100 are within %(most)s m."
        )
        % facts,
        gettext(
            "One report changes the odds between two places that are %(radius)s m apart by a factor of "
            "at most %(odds)s, whatever else is known except other reports of the same person. For "
            "places twice as far apart, square that factor."
        )
        % facts,
        several
        + " "
        + gettext(
            "All reports of a person together change the odds between two lives that repeat and change "
            "places on the same days, and whose places are %(radius)s m apart, by a factor of at most "
            "%(all)s."
        )
        % facts,
        squares_words(protection),
        gettext("Epsilon is %(epsilon)s per metre; it is separate from the epsilon of answers.") % facts,
    ]
