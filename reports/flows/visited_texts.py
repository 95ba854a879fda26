"""Texts of visited zones: what is counted, what the list says, and how sure it is."""

from django.utils.translation import gettext

from reports.base import formats
from reports.flows.visited import Visited


def people_title(found: Visited) -> str:
    """Head of the column of figures."""
    return gettext("Visitor-days") if found.window.days > 1 else gettext("Visitors")


def share_title(found: Visited) -> str:
    """Head of the column of shares."""
    return gettext("Share of visitor-days") if found.window.days > 1 else gettext("Share of visitors")


def list_title(found: Visited) -> str:
    """Title of the list."""
    return (
        gettext("Pairs of zones visited on the same day")
        if found.items.in_pairs
        else gettext("Zones visited in a day")
    )


def unit_words(found: Visited) -> str:
    """Describe what the figures count."""
    if found.items.in_pairs:
        what = gettext(
            "Each figure is the number of visitors who were in both zones on the same day. A visitor who "
            "was in more than two zones on a day counts in several pairs."
        )
    else:
        what = gettext(
            "Each figure is the number of visitors who were in the zone on a day, however long they "
            "stayed. A visitor who was in several zones counts in each of them, so the shares can add up "
            "to more than 100%."
        )
    if found.window.days > 1:
        what += " " + gettext("A person who visits on several days counts once for each of these days.")
    return f"{what} {weight_words(found)}"


def weight_words(found: Visited) -> str:
    """Say how days with many visits count."""
    if found.items.is_complete:
        return gettext("Every visit counts in full, however many visits a person makes in a day.")
    text = (
        gettext(
            "If a person has more than %(n)d pairs of zones on a day, these pairs together count as only "
            "%(n)d. The figures therefore understate how often such people visit."
        )
        if found.items.in_pairs
        else gettext(
            "If a person visits more than %(n)d zones on a day, these zones together count as only %(n)d. "
            "The figures therefore understate how often such people visit."
        )
    )
    return text % {"n": found.items.spec.per_day}


def error_words() -> str:
    """Describe how intervals are computed."""
    return gettext(
        "The 95% interval is shown below each figure. It accounts for three sources of error: only some "
        "visitors were asked, each person reports only one randomly chosen visit per day, and noise is "
        "added. New noise is drawn every day, so the errors of several days partly cancel out."
    )


def list_words(found: Visited) -> str:
    """Summarise the list, and say what is unknown of all others."""
    values = {"n": formats.number(len(found.listed)), "all": formats.number(len(found.figures))}
    if not found.is_reliable:
        text = (
            gettext("The noise is too large to give reliable figures for the %(all)s pairs of zones.")
            if found.items.in_pairs
            else gettext("The noise is too large to give reliable figures for the %(all)s zones.")
        )
        return text % values
    if not found.listed:
        return (
            gettext(
                "None of the figures for the %(all)s pairs of zones can be distinguished from zero, because "
                "the noise is too large."
            )
            if found.items.in_pairs
            else gettext(
                "None of the figures for the %(all)s zones can be distinguished from zero, because the noise "
                "is too large."
            )
        ) % values
    if found.items.in_pairs:
        text = gettext(
            "The figures for %(n)s of %(all)s pairs of zones can be distinguished from zero. The "
            "probability that even one of these pairs is listed by mistake is at most 5%%."
        )
    else:
        text = gettext(
            "The figures for %(n)s of %(all)s zones can be distinguished from zero. The probability that "
            "even one of these zones is listed by mistake is at most 5%%."
        )
    return text % values
