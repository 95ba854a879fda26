"""Sentences about a batch that differ between studies of people and studies of events."""

from django.utils.translation import gettext, ngettext

from reports.base.formats import number


def reading(*, of_events: bool) -> str:
    if of_events:
        return gettext(
            "The worker checks the rows and replaces each row with values computed with the study's key."
        )
    return gettext(
        "The worker checks the rows and replaces each identifier with a pseudonym computed with the study's "
        "key."
    )


def checking(*, of_events: bool) -> str:
    if of_events:
        return gettext(
            "The worker counts the events and answers in the file. This is only a check, so nothing is kept "
            "or published."
        )
    return gettext(
        "The worker counts the visits and answers in the file. This is only a check, so nothing is kept or "
        "published."
    )


def merging(*, of_events: bool) -> str:
    if of_events:
        return gettext("The worker records the events of each day of the study and randomises the answers.")
    return gettext("The worker records the visits for each day of the study and randomises the answers.")


def publishing(*, of_events: bool) -> str:
    if of_events:
        return gettext("The worker sends the counts of events and of randomised answers to the analyst zone.")
    return gettext("The worker sends the counts of visitors and of randomised answers to the analyst zone.")


def not_yet(n: int, least: str, *, is_enough: bool, of_events: bool) -> str:
    """Explain why changes of `n` subscribers or events wait; `is_enough`: they are at least `least`."""
    if is_enough and of_events:
        text = gettext(
            "The pending changes have not been published yet. They cover enough events (%(n)s), but the new "
            "report would differ from an earlier report by fewer than %(least)s events."
        )
    elif is_enough:
        text = gettext(
            "The pending changes have not been published yet. They cover enough subscribers (%(n)s), but the "
            "new report would differ from an earlier report by fewer than %(least)s subscribers."
        )
    elif of_events:
        text = ngettext(
            "Not published yet: the pending changes cover %(n)s event, but a publication must cover at "
            "least %(least)s.",
            "Not published yet: the pending changes cover %(n)s events, but a publication must cover at "
            "least %(least)s.",
            n,
        )
    else:
        text = ngettext(
            "Not published yet: the pending changes cover %(n)s subscriber, but a publication must cover at "
            "least %(least)s.",
            "Not published yet: the pending changes cover %(n)s subscribers, but a publication must cover at "
            "least %(least)s.",
            n,
        )
    return text % {"n": number(n), "least": least}


def until_later(*, of_events: bool) -> str:
    if of_events:
        return gettext(
            "These changes are waiting to be published with later changes. If all pending changes together "
            "still cover too few events when the study is closed, they will never be published. The erasure "
            "certificate will then state how many events they cover."
        )
    return gettext(
        "These changes are waiting to be published with later changes. If all pending changes together still "
        "cover too few subscribers when the study is closed, they will never be published. The erasure "
        "certificate will then state how many subscribers they cover."
    )


def never_published(least: str, *, is_enough: bool, of_events: bool) -> str:
    """Explain why changes that waited when the study was closed were dropped; parameters as of `not_yet`."""
    if is_enough and of_events:
        text = gettext(
            "These changes were never published, because the new report would have differed from an earlier "
            "one by fewer than %(least)s events."
        )
    elif is_enough:
        text = gettext(
            "These changes were never published, because the new report would have differed from an earlier "
            "one by fewer than %(least)s subscribers."
        )
    elif of_events:
        text = gettext(
            "These changes were never published, because they affected fewer than %(least)s events when the "
            "study was closed."
        )
    else:
        text = gettext(
            "These changes were never published, because they affected fewer than %(least)s subscribers when "
            "the study was closed."
        )
    return text % {"least": least}
