"""Sentences of a privacy statement of a study of events: its unit is an event, and never a person."""

from django.utils.translation import gettext


def event_definition() -> str:
    """Return what the guarantee of events compares."""
    return gettext(
        "Each row of a file is one event, and each event is a separate privacy unit. The guarantee compares "
        "two events on the same day whose values may differ only in the privacy unit. Consider the "
        "probability that a given set of answers leaves the operator zone. This probability differs between "
        "the two events by a factor of at most exp(epsilon). It does not cover all events of a person "
        "together."
    )


def event_units() -> dict[str, str]:
    """Return the privacy units of events."""
    return {
        "attribute": gettext("one of an event's values"),
        "profile": gettext("all of an event's values"),
    }


def event_limits() -> dict[str, str]:
    """Return the unprotected facts of events, by name."""
    return {
        "events": gettext(
            "Events: the number of events on each day is exact. Nothing hides whether an event took place, "
            "or on which day. Only the values of an event are protected, for example where it took place."
        ),
        "several_events": gettext(
            "People with several events: the epsilons of their events add up. The study does not limit how "
            "many events a person can have, so it guarantees no epsilon per person."
        ),
        "missing_values": gettext(
            "Missing values: an event without a value for an indicator gives no answer on that indicator. "
            "The number of answers is published without noise."
        ),
        "times": gettext(
            "Timing: anyone who reads the totals before and after a change sees when they change and by how "
            "much. Each change covers at least as many events as the study requires (min_publication), "
            "counted across all days and indicators. The same applies when several changes are taken "
            "together. Even so, the change in a figure for a single period or indicator can come from just "
            "one event."
        ),
        "key_holder": gettext(
            "The operator: anyone who has the study key and the row of an event can remove the noise from "
            "the answers of that event. The guarantee covers what leaves the operator zone."
        ),
    }


def population_words() -> str:
    """Explain what adds up in a population of events."""
    return gettext(
        "Studies of the same population may cover the same events, so the information that these studies "
        "reveal about an event adds up. A study is included from the time it is created, unless it was "
        "closed without publishing anything. The figures are per event, and not per person."
    )
