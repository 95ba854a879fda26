"""Sentences of a privacy statement of a study of events: its unit is an event.

A study that limits the events of a person has a second unit: the person.
"""

from django.utils.translation import gettext, ngettext

from ldp import PlanSpec


def event_definition(spec: PlanSpec) -> str:
    """Return what the guarantee of events compares."""
    text = gettext(
        "Each row of a file is one event, and each event is a separate privacy unit. The guarantee compares "
        "two events on the same day whose values may differ only in the privacy unit. Consider the "
        "probability that a given set of answers leaves the operator zone. This probability differs between "
        "the two events by a factor of at most exp(epsilon)."
    )
    if spec.max_events is None:
        return f"{text} " + gettext("It does not cover all events of a person together.")
    return f"{text} " + ngettext(
        "A separate guarantee covers each person. Only %(n)d event of a person is answered, so the "
        "probability differs by a factor of at most exp(epsilon per person) between two people with events "
        "at the same times. The values of all these events may differ.",
        "A separate guarantee covers each person. At most %(n)d events of a person are answered, so the "
        "probability differs by a factor of at most exp(epsilon per person) between two people with events "
        "at the same times. The values of all these events may differ.",
        spec.max_events,
    ) % {"n": spec.max_events}


def event_units() -> dict[str, str]:
    """Return the privacy units of events."""
    return {
        "attribute": gettext("one of an event's values"),
        "profile": gettext("all of an event's values"),
    }


def person_unit() -> str:
    """Return the second unit of a study that limits the events of a person."""
    return gettext("all values of all of a person's events in the study")


def _several_events(spec: PlanSpec) -> dict[str, str]:
    """Return what is not protected of people with several events."""
    if spec.max_events is None:
        text = gettext(
            "People with several events: the epsilons of their events add up. The study does not limit how "
            "many events a person can have, so it guarantees no epsilon per person."
        )
        return {"several_events": text}
    return {
        "several_events": gettext(
            "People with several events: the epsilons of their answered events add up to the epsilon per "
            "person. The limit applies to each identifier in the files, so a person with two identifiers has "
            "two limits. Events without an identifier are counted and never answered. Nothing hides how many "
            "events a person has, or how many of them are answered."
        ),
        "unanswered_events": gettext(
            "Representativeness: events of a person beyond the limit are in the exact totals, but give no "
            "answer. Shares are those of answered events, and estimated numbers of events apply these shares "
            "to all events. They are wrong if later events of people with many events differ from the others."
        ),
    }


def event_limits(spec: PlanSpec) -> dict[str, str]:
    """Return the unprotected facts of events, by name."""
    return {
        "events": gettext(
            "Events: the number of events on each day is exact. Nothing hides whether an event took place, "
            "or on which day. Only the values of an event are protected, for example where it took place."
        ),
        **_several_events(spec),
        "missing_values": gettext(
            "Missing values: an event without a value for an indicator gives no answer on that indicator. "
            "The number of answers is published without noise."
        ),
        "times": gettext(
            "Timing: anyone who reads the totals before and after a change sees when they change and by how "
            "much. Each change covers at least as many events as the study requires for a publication, "
            "counted across all days and indicators. The same applies when several changes are taken "
            "together. Even so, the change in a figure for a single period or indicator can come from just "
            "one event."
        ),
        "key_holder": gettext(
            "The operator: anyone who has the study key and the row of an event can remove the noise from "
            "the answers of that event. The guarantee covers what leaves the operator zone."
        ),
    }


def population_words(spec: PlanSpec) -> str:
    """Explain what adds up in a population of events, or of people with events."""
    if spec.max_events is not None:
        return gettext(
            "Studies of the same population may cover the same people, so the information that these "
            "studies reveal about all events of a person adds up. A study is included from the time it is "
            "created, unless it was closed without publishing anything. The figures are per person: each is "
            "the epsilon of an event times the maximum number of answered events."
        )
    return gettext(
        "Studies of the same population may cover the same events, so the information that these studies "
        "reveal about an event adds up. A study is included from the time it is created, unless it was "
        "closed without publishing anything. The figures are per event, and not per person."
    )
