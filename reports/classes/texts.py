"""Texts on classes of subscribers."""

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.classes.queries import ByClass, Share


def weights_words() -> str:
    """Explain the shares of the report."""
    return gettext(
        "The shares above count each class by its number of visitors. They are right whether or not the "
        "classes differ. The section “Privacy” describes the class with the largest epsilon."
    )


def alike_words(found: ByClass) -> str:
    """Say whether shares that assume equal shares of all classes are shown, and why."""
    if found.is_hidden:
        return gettext(
            "At least one class has fewer visitors on these days than the small-cell rule allows, so this "
            "indicator has no figures for them. Figures of the other classes, or of all, would reveal it."
        )
    if found.pooled is None:
        return gettext("The classes cannot be tested for equal shares on these days.")
    values = {"p": formats.p_value(found.pooled.test.p_value)}
    if not found.alike:
        return (
            gettext(
                "A test found that the classes have different shares (p %(p)s). So shares that assume "
                "the same shares in all classes are not shown."
            )
            % values
        )
    return (
        gettext(
            "A test found no difference between the classes (p %(p)s). This does not prove that they have "
            "the same shares. If they do, the shares that assume it are more accurate than the others."
        )
        % values
    )


def alike_title() -> str:
    """Title of the shares that assume the same shares in all classes."""
    return gettext("All, assuming the same shares")


def share_text(share: Share) -> tuple[str, str]:
    """Return the share and its interval."""
    if share.status != Status.OK:
        return formats.status_word(share.status), formats.percent_range(share.ci_low, share.ci_high)
    return formats.percent(share.frequency), formats.percent_range(share.ci_low, share.ci_high)
