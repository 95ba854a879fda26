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
            "On average, a reported place is %(mean)s m from the true place. Of 100 reported places, 95 "
            "are within %(most)s m of the true place."
        )
        % facts,
        gettext(
            "Imagine two places that are %(radius)s m apart. One report changes the odds that the "
            "person was at one place rather than the other by a factor of at most %(odds)s. This "
            "limit holds regardless of what else is known, except for other reports from the same "
            "person. For places twice as far apart, square the factor."
        )
        % facts,
        several
        + " "
        + gettext(
            "Imagine two possible histories of where a person was. Any two days with the same place in "
            "one history also have the same place in the other. On each day, the places in the two "
            "histories are %(radius)s m apart. All of the person's reports together change the odds of "
            "one history relative to the other by a factor of at most %(all)s."
        )
        % facts,
        squares_words(protection),
        gettext(
            "Epsilon for places is %(epsilon)s per metre. This epsilon is separate from the epsilon for "
            "answers."
        )
        % facts,
    ]
