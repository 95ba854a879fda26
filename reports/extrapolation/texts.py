"""Texts of extrapolated totals: the shares that were used, the total and the unscaled number."""

from django.utils.text import capfirst
from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.extrapolation.queries import CategoryPeople, Extrapolation, People
from reports.studies.studyfile.category_shares import CategoryShare, CategoryShares
from reports.studies.texts import status_reason


def shares_words(shares: CategoryShares) -> str:
    """Name the shares and the days on which they are valid."""
    values = {"name": shares.shown_name, "first": formats.day_title(shares.valid_from)}
    if shares.valid_to is None:
        return gettext("%(name)s, valid from %(first)s") % values
    values["last"] = formats.day_title(shares.valid_to)
    return gettext("%(name)s, valid from %(first)s to %(last)s") % values


def total_sentence(found: Extrapolation) -> str:
    """Say how many people there are, and how many visitors were counted, or why that is not known."""
    if found.shares is None:
        return gettext(
            "No total for the population: no market shares by category are valid on all of these days."
        )
    if found.total.value is None:
        name = capfirst(formats.status_word(found.total.status))
        reason = status_reason(found.total.status, found.report.study)
        return gettext("%(name)s: %(figure)s") % {"name": name, "figure": reason}
    values = {
        "seen": formats.number(found.report.n_visitors),
        "range": formats.number_range(found.total.ci_low, found.total.ci_high),
        "shares": shares_words(found.shares),
    }
    if found.total.status != Status.OK:
        return (
            gettext(
                "Not reliable: the interval of the total (%(range)s people) is too wide. Not scaled: "
                "%(seen)s visitors. Market shares: %(shares)s."
            )
            % values
        )
    return gettext(
        "About %(people)s people (95%% interval: %(range)s). Not scaled: %(seen)s visitors. Market "
        "shares: %(shares)s."
    ) % {**values, "people": formats.number(found.total.value)}


def method_words(found: Extrapolation) -> str:
    """Explain how the total is made, and what its interval includes."""
    text = gettext(
        "The estimated visitors in each category are divided by the market share of that category, then "
        "added up. The interval includes the noise and the sampling, with the covariances between "
        "categories."
    )
    if found.shares is None or not any(each.low is not None for each in found.shares.shares):
        return text + " " + gettext("The market shares are taken as exact.")
    return (
        text
        + " "
        + gettext("It also includes the error of each market share that has an interval (delta method).")
    )


def share_text(share: CategoryShare) -> str:
    """Write a share, with its interval where it has one."""
    value = formats.percent(float(share.share))
    if share.low is None or share.high is None:
        return value
    return f"{value} ({formats.percent_range(float(share.low), float(share.high))})"


def people_texts(people: People) -> tuple[str, str]:
    """Write a number of people, or why there is none, and its interval."""
    if people.value is None or people.status != Status.OK:
        shown = formats.status_word(people.status)
        return capfirst(shown), formats.number_range(people.ci_low, people.ci_high)
    return formats.number(people.value), formats.number_range(people.ci_low, people.ci_high)


def category_cells(row: CategoryPeople) -> tuple[str, str, str, str, str, str]:
    """Write a category: name, visitors and interval, share, people and interval."""
    return (row.shown_category, *people_texts(row.seen), share_text(row.share), *people_texts(row.people))
