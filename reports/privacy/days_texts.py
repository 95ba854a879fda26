"""Knowledge from reports of several days about a daily value, beyond epsilon."""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext

from ldp import Certificate, PlanSpec, epsilon_of
from ldp.privacy.attacker import guess_success, known_day_success
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr
from reports.base import formats
from reports.studies.texts import undone_day_words


def repeated(spec: PlanSpec) -> list[int]:
    """Positions of daily indicators on which a person repeats answers; moves and streams have new noise."""
    return [
        index
        for index, asked in enumerate(spec.indicators)
        if asked.kind == "daily"
        and not (asked.moves or spec.is_stream(index))
        and spec.values_per_person(index) > 1
    ]


def window_words(spec: PlanSpec, certificate: Certificate) -> str:
    """State the limit for the days of a window; empty in a plan without streams."""
    if certificate.epsilon_window is None:
        return ""
    values = {"window": spec.window_days, "epsilon": formats.epsilon(certificate.epsilon_window)}
    if spec.window_days == 1:
        return gettext("For the answers of any single day, the limit is epsilon %(epsilon)s.") % values
    return (
        gettext("For the answers of any %(window)d consecutive days, the limit is epsilon %(epsilon)s.")
        % values
    )


def names_of(slugs: Iterable[str], names: Mapping[str, str]) -> str:
    """List indicators by the names that readers know."""
    return ", ".join(names.get(slug, slug) for slug in slugs)


def daily_limits(spec: PlanSpec, names: Mapping[str, str]) -> dict[str, str]:
    """Return the unprotected facts of daily values, by name; nothing without daily indicators.

    `names` are those of indicators by slug.
    """
    if all(asked.kind == "static" for asked in spec.indicators):
        return {}
    moves, visits = (
        [each.slug for each in spec.indicators if each.moves and (each.moves.items == "moves") == are_moves]
        for are_moves in (True, False)
    )
    sentences = []
    daily = [
        index for index, asked in enumerate(spec.indicators) if asked.kind == "daily" and not asked.moves
    ]
    if any(not (spec.is_hashed(index) or spec.is_stream(index)) for index in daily):
        sentences.append(
            gettext(
                "Changes: the values of a daily indicator are protected. Whether a value changes from one "
                "day to the next is not protected, because the same value always gives the same answer."
            )
        )
    if hashed := _hashes(spec, names):
        sentences.append(hashed)
    if streams := _streams(spec, names):
        sentences.append(streams)
    if moves:
        text = gettext(
            "Moves (%(indicators)s): new noise is drawn every day, so reports do not show whether a "
            "person repeats a move."
        )
        sentences.append(text % {"indicators": names_of(moves, names)})
    if visits:
        text = gettext(
            "Visited zones (%(indicators)s): new noise is drawn every day, so reports do not show whether "
            "a person visits a zone again."
        )
        sentences.append(text % {"indicators": names_of(visits, names)})
    if any(map(spec.has_new_noise, range(spec.d))):
        sentences.append(undone_day_words())
    if spec.has_fakes:
        sentences.append(
            gettext(
                "A made-up report stays the same every day, so a report that changes must be the real one."
            )
        )
    found = [_known_day(spec, index, names) for index in repeated(spec)]
    if found:
        sentences.append(
            gettext(
                "Suppose that an attacker knows a person's value on one day and sees the person's "
                "reports for that day and another day. The attacker then learns more about the value "
                "on the other day than epsilon indicates. If all categories were equally likely "
                "beforehand, the chances of correctly guessing the value on the other day are: "
                "%(indicators)s."
            )
            % {"indicators": formats.listed(found)}
        )
    return {
        "changes": " ".join(
            filter(
                None,
                [*sentences]
                + [words(spec, names) for words in (two_categories, _numbers, _questions, _parts)],
            )
        )
    }


def _has_cut(spec: PlanSpec, index: int) -> bool:
    asked = spec.indicators[index]
    return asked.scale is not None and not asked.is_wave


def _numbers(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return what daily numbers show of a person; empty without any."""
    slugs = [spec.indicators[index].slug for index in repeated(spec) if _has_cut(spec, index)]
    if not slugs:
        return ""
    return gettext(
        "Daily numbers (%(indicators)s): the threshold that a person is asked about is public. If "
        "the person's reports for two days differ, the value was below the threshold on only one of "
        "these days. The epsilon per attribute therefore gives no guarantee for a day if its report "
        "is seen together with the report for another day. The epsilon per profile covers any number "
        "of days."
    ) % {"indicators": names_of(slugs, names)}


def _questions(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return what answers to permanent questions show of a person; empty without any."""
    slugs = [spec.indicators[index].slug for index in repeated(spec) if spec.has_question(index)]
    if not slugs:
        return ""
    return gettext(
        "Permanent questions (%(indicators)s): the question that each person is asked is public. If a "
        "person's reports for two days differ, they reveal that the true answer was “yes” on one day and "
        "“no” on the other. The epsilon per attribute therefore gives no guarantee for a day if its "
        "report is seen together with the report for another day. The epsilon per profile covers any "
        "number of days."
    ) % {"indicators": names_of(slugs, names)}


def _parts(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return why a part that lasts is not protected against all others; empty without any."""
    static = {asked.slug for asked in spec.indicators if asked.kind == "static"}
    slugs = [
        spec.indicators[index].slug
        for index in repeated(spec)
        if static.intersection(spec.indicators[index].parts)
        and (spec.has_question(index) or spec.is_hashed(index))
    ]
    if not slugs:
        return ""
    return gettext(
        "Joint indicators (%(indicators)s): even if two people differ only in a value that stays the "
        "same on all days, their true answers can change on different days. The guarantee does not cover "
        "such pairs of people, so the epsilon per attribute for this value does not hold for every pair "
        "of people."
    ) % {"indicators": names_of(slugs, names)}


def _hashes(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return what reports on hashed values show of a person; empty without any."""
    found = {
        spec.indicators[index].slug: channel.answer.second_ratio
        for index in repeated(spec)
        if isinstance(channel := spec.answer_channel(index), QuestionChannel)
        and isinstance(channel.answer, TwoRoundGrr)
    }
    if not found:
        return ""
    return gettext(
        "Hashed values (%(indicators)s): for each person, the list of categories is divided into sets in "
        "a different way, and how it is divided is public. New noise is added to every report. Two "
        "reports alone therefore do not show for certain whether the person's value has moved to a "
        "different set, but many reports together can. The stated guarantee does not cover such changes; "
        "each report reveals at most epsilon %(each)s more about them. If an attacker sees all reports "
        "and knows the values on all days except one, each report for that day reveals at most epsilon "
        "%(each)s about the value on that day. The epsilon per attribute does not limit this loss."
    ) % {"indicators": names_of(found, names), "each": formats.epsilon(epsilon_of(max(found.values())))}


def _streams(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return what a stream does not protect; empty without one."""
    slugs = [spec.indicators[index].slug for index in range(spec.d) if spec.is_stream(index)]
    if not slugs:
        return ""
    return gettext(
        "Streams (%(indicators)s): new noise is drawn for every answer, so answers do not show whether a "
        "value has changed. The days on which a person answers are public. The limit for consecutive days "
        "does not apply to longer periods: the epsilons of all of a person's answers add up."
    ) % {"indicators": names_of(slugs, names)}


def _known_day(spec: PlanSpec, index: int, names: Mapping[str, str]) -> str:
    asked, channel = spec.indicators[index], spec.channel(index)
    before = 1 / asked.n_values
    alone = guess_success(channel, prior=[before] * asked.n_values)
    return gettext(
        "%(name)s: %(before)s without any report, %(alone)s with one day's report, and "
        "%(known)s with the reports for two days and the value on one of these days"
    ) % {
        "name": names.get(asked.slug, asked.slug),
        "before": formats.percent(before),
        "alone": formats.percent(alone),
        "known": formats.percent(known_day_success(channel)),
    }


def two_categories(spec: PlanSpec, names: Mapping[str, str]) -> str:
    """Return why epsilon per attribute promises nothing of days seen together; empty where it does."""
    slugs = [
        spec.indicators[i].slug
        for i in repeated(spec)
        if spec.indicators[i].n_values == 2 and not spec.has_question(i) and not spec.is_hashed(i)
    ]
    if not slugs:
        return ""
    return gettext(
        "Indicators with two categories (%(indicators)s): the epsilon per attribute gives no guarantee "
        "for a day if its report is seen together with the report for another day. If a person's reports "
        "for two days differ, the person's values also differ, so anyone who sees both reports and knows "
        "one of the values learns the other. The reason: the epsilon per attribute compares two people "
        "whose values differ on only one day, but whose days with equal values are the same. With two "
        "categories, there are no such people."
    ) % {"indicators": names_of(slugs, names)}
