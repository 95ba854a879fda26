"""Comparison of a proposed plan with the one before it: weaker, stronger or neither, in words.

The one place that says what needs a second person. Any change not known to keep or strengthen the protection
needs one: a field that this module has never heard of, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from django.utils.translation import gettext

from ldp import Certificate, PlanSpec, certify
from reports.base import formats
from reports.privacy.statement.locations import location_protection
from reports.studies.studyfile import IndicatorDefinition, PlanDefinition, StudyDefinition
from reports.studies.studyfile.class_definition import ClassDefinition
from reports.studies.studyfile.definition import IN_GROUPS, SENSITIVE
from reports.studies.texts import tallies_words


class Direction(StrEnum):
    """Effect of a change on the protection of a person."""

    WEAKER = "weaker"
    STRONGER = "stronger"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference, as a sentence."""

    text: str
    direction: Direction
    needs_second_person: bool


# Of [study]: what names or scales a study, and changes nothing for a person in it.
_HARMLESS = ("slug", "name", "name_fr", "market_share", "category_shares", "expected_subscribers")
# Compared by what they lead to, below.
_WEIGHED = (
    "days", "min_publication", "small_cell", "small_category",
    "plan", "indicators", "location", "slots", "area", "classes",
)  # fmt: skip
_WEIGHED_OF_PLAN = (
    "mechanism", "unit", "epsilon", "epsilon_profile", "presence_epsilon", "presence_days", "tallies",
)  # fmt: skip
_WEIGHED_OF_INDICATOR = (
    "slug", "name", "name_fr", "categories", "categories_fr", "epsilon", "max_values", "weight", "parts",
    "scale", "groups", "max_moves", "protect", "sensitive",
)  # fmt: skip


def plan_changes(before: StudyDefinition | None, after: StudyDefinition) -> tuple[Change, ...]:
    """All that differs, in the order of the study file; a new study has nothing to be compared with.

    `before` is in force, or the study that `after` was copied from; its area is not looked at.
    """
    if before is None:
        return ()
    return (
        *_of_study(before, after),
        *_of_plan(before.plan, after.plan),
        *_of_classes(before.classes, after.classes),
        *_of_numbers(before.plan_spec(), after.plan_spec()),
        *_of_indicators(before, after),
        *_of_places(before.plan_spec(), after.plan_spec()),
        *_of_slots(before, after),
    )


def second_person_reasons(
    before: StudyDefinition | None, after: StudyDefinition, *, is_new_study: bool
) -> list[str]:
    """Why someone else must approve it, as sentences; empty if the author may publish alone."""
    always = []
    if after.plan.discloses_values:
        always = [
            gettext(
                "Answers disclose categories that are not sensitive (discloses_values). A second person must "
                "always approve this."
            )
        ]
    if is_new_study:
        return [*always, gettext("This is a new study, and no second person has approved its plan.")]
    changes = plan_changes(before, after)
    return [*always, *(change.text for change in changes if change.needs_second_person)]


def _of_study(before: StudyDefinition, after: StudyDefinition) -> Iterator[Change]:
    weighed = (
        ("days", gettext("Days of the study"), True),
        ("min_publication", gettext("Minimum subscribers per publication"), False),
        ("small_cell", gettext("Small-cell threshold (visitors)"), False),
        ("small_category", gettext("Small-category threshold (visitors)"), False),
    )
    for key, label, more_is_weaker in weighed:
        old, new = (getattr(each, key) or 0 for each in (before, after))
        yield from _number(label, old, new, more_is_weaker=more_is_weaker)
    for each in fields(StudyDefinition):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if each.name in (*_WEIGHED, "slug") or old == new:
            continue
        yield Change(
            text=_field_words(each.name, old, new),
            direction=Direction.OTHER,
            needs_second_person=each.name not in _HARMLESS,
        )


def _of_plan(before: PlanDefinition, after: PlanDefinition) -> Iterator[Change]:
    if before.mechanism != after.mechanism:
        yield _other(
            gettext("The mechanism changes from %(old)s to %(new)s."), before.mechanism, after.mechanism
        )
    if before.unit != after.unit:
        yield _other(gettext("The privacy unit changes from %(old)s to %(new)s."), before.unit, after.unit)
    yield from _limit(
        gettext("Maximum epsilon per profile (epsilon_profile)"),
        before.epsilon_profile,
        after.epsilon_profile,
    )
    old, new = (getattr(each, "presence_epsilon", None) for each in (before, after))
    yield from _limit(gettext("Presence epsilon"), old, new)
    old_days, new_days = (getattr(each, "presence_days", None) for each in (before, after))
    if old is not None and new is not None and old_days != new_days:
        yield _other(
            gettext("Days counted per subscriber (presence_days): previously %(old)s, now %(new)s."),
            old_days,
            new_days,
        )
    yield from _of_tallies(before, after)
    for each in fields(PlanDefinition):
        was, becomes = getattr(before, each.name), getattr(after, each.name)
        if each.name not in _WEIGHED_OF_PLAN and was != becomes:
            yield _other(_field_words(each.name, was, becomes))


def _of_classes(before: tuple[ClassDefinition, ...], after: tuple[ClassDefinition, ...]) -> Iterator[Change]:
    old, new = ({each.slug: each for each in classes} for classes in (before, after))
    for each in before:
        if each.slug not in new:
            yield _class_change(
                gettext("The class %(slug)s (%(name)s) was removed. Its epsilon was %(epsilon)s."), each
            )
    for each in after:
        if each.slug in old:
            yield from _of_class(old[each.slug], each)
        else:
            yield _class_change(
                gettext("The class %(slug)s (%(name)s) was added, with epsilon %(epsilon)s."), each
            )
    if old == new and before != after:
        yield _harmless(gettext("The classes are in a different order."))


def _class_change(pattern: str, changed: ClassDefinition) -> Change:
    epsilon = _shown(changed.epsilon)
    return _other(pattern % {"slug": changed.slug, "name": changed.name, "epsilon": epsilon})


def _of_class(old: ClassDefinition, new: ClassDefinition) -> Iterator[Change]:
    label = gettext("Epsilon of the class %(slug)s") % {"slug": new.slug}
    yield from _number(label, old.epsilon, new.epsilon, more_is_weaker=True)
    values = {"slug": new.slug, "name": new.name, "old": old.value, "new": new.value}
    if old.name != new.name:
        yield _harmless(gettext("The class %(slug)s has a new name: %(name)s.") % values)
    if old.name_fr != new.name_fr:
        yield _harmless(gettext("The class %(slug)s has a new French name.") % values)
    if old.value != new.value:
        text = gettext("The class %(slug)s has another value in its column: previously %(old)s, now %(new)s.")
        yield _other(text % values)


def _of_tallies(before: PlanDefinition, after: PlanDefinition) -> Iterator[Change]:
    added = [each for each in after.tallies if each not in before.tallies]
    removed = [each for each in before.tallies if each not in after.tallies]
    if added:
        text = gettext("The totals now also contain exact counts for: %(names)s.") % {
            "names": tallies_words(added)
        }
        yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
    if removed:
        text = gettext("The totals no longer contain counts for: %(names)s.") % {
            "names": tallies_words(removed)
        }
        yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)


def _of_numbers(before: PlanSpec, after: PlanSpec) -> Iterator[Change]:
    old, new = certify(before), certify(after)
    units = (
        (gettext("Certified epsilon per profile"), old.epsilon_profile, new.epsilon_profile),
        (gettext("Certified epsilon per attribute"), old.epsilon_attribute, new.epsilon_attribute),
    )
    for label, was, becomes in units:
        yield from _number(label, was, becomes, more_is_weaker=True)
    yield from _of_answers(old, new)


def _of_answers(old: Certificate, new: Certificate) -> Iterator[Change]:
    entries = {entry.slug: entry for entry in old.indicators}
    for entry in new.indicators:
        was = entries.get(entry.slug)
        if was is None:
            continue
        values = {"slug": entry.slug}
        epsilon = gettext("%(slug)s: epsilon per answer") % values
        yield from _number(epsilon, was.epsilon, entry.epsilon, more_is_weaker=True)
        most = gettext("%(slug)s: maximum number of answers per person") % values
        yield from _number(most, was.n_values, entry.n_values, more_is_weaker=True)


def _of_indicators(before: StudyDefinition, after: StudyDefinition) -> Iterator[Change]:
    old = {each.slug: each for each in before.indicators}
    new = {each.slug: each for each in after.indicators}
    for slug in [each for each in old if each not in new]:
        text = gettext("The indicator %(slug)s was removed.") % {"slug": slug}
        yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)
    for slug, indicator in new.items():
        if slug not in old:
            text = gettext("The indicator %(slug)s was added, so the study asks one more question.") % {
                "slug": slug
            }
            if indicator.parts:
                text += " " + _combines(indicator)
            if indicator.protect:
                text += " " + _discloses(indicator)
            yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
        else:
            yield from _of_indicator(old[slug], indicator)


def _combines(indicator: IndicatorDefinition) -> str:
    return gettext("%(slug)s combines these indicators: %(names)s.") % {
        "slug": indicator.slug,
        "names": ", ".join(indicator.parts) or gettext("none"),
    }


def _discloses(indicator: IndicatorDefinition) -> str:
    if indicator.protect == SENSITIVE:
        return gettext(
            "Answers to %(slug)s disclose every category that is not sensitive, so these categories are not "
            "protected. The sensitive categories are: %(names)s."
        ) % {"slug": indicator.slug, "names": ", ".join(indicator.sensitive)}
    return gettext(
        "Answers to %(slug)s give the group of each category without noise, so the group of each "
        "subscriber is not protected. The groups are: %(names)s."
    ) % {"slug": indicator.slug, "names": ", ".join(name for name, _members in indicator.groups)}


def _of_protect(old: IndicatorDefinition, new: IndicatorDefinition) -> Iterator[Change]:
    """Groups and categories that answers disclose: their change is one of the protection."""
    is_other = (old.protect, old.sensitive) != (new.protect, new.sensitive)
    if new.protect and (is_other or (new.protect == IN_GROUPS and old.groups != new.groups)):
        yield Change(text=_discloses(new), direction=Direction.WEAKER, needs_second_person=True)
    elif old.protect and not new.protect:
        text = gettext("Answers to %(slug)s no longer disclose groups or categories.") % {"slug": new.slug}
        yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)
    elif old.groups != new.groups:
        yield _harmless(gettext("The groups of categories of %(slug)s have changed.") % {"slug": new.slug})


def _of_indicator(old: IndicatorDefinition, new: IndicatorDefinition) -> Iterator[Change]:
    added = [each for each in new.categories if each not in old.categories]
    removed = [each for each in old.categories if each not in new.categories]
    values = {"slug": new.slug, "names": ", ".join(added or removed)}
    if added:
        text = gettext("%(slug)s has new categories: %(names)s.") % values
        yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
    elif removed:
        text = gettext("%(slug)s no longer has these categories: %(names)s.") % values
        yield Change(text=text, direction=Direction.OTHER, needs_second_person=True)
    elif old.categories != new.categories:
        yield _harmless(gettext("The categories of %(slug)s are in a different order.") % values)
    if old.parts != new.parts:
        yield _other(_combines(new))
    if old.scale != new.scale:
        yield _other(
            gettext("The thresholds, minimum, unit or type of report of %(slug)s would change.") % values
        )
    if old.max_moves and new.max_moves and old.max_moves != new.max_moves:
        most = {**values, "old": old.max_moves, "new": new.max_moves}
        text = gettext(
            "%(slug)s: the number of moves or visits per day that count in full changes from %(old)d to "
            "%(new)d."
        )
        yield _harmless(text % most)
    if old.weight != new.weight:
        yield _harmless(
            gettext(
                "The weight of %(slug)s has changed, so people are asked about this indicator either more "
                "often or less often than before."
            )
            % values
        )
    if old.name != new.name:
        yield _harmless(gettext("%(slug)s has a new name: %(name)s.") % {**values, "name": new.name})
    if (old.name_fr, old.categories_fr) != (new.name_fr, new.categories_fr):
        yield _harmless(gettext("%(slug)s has new French names.") % values)
    yield from _of_protect(old, new)
    kept = {key: getattr(old, key) for key in _WEIGHED_OF_INDICATOR}
    if replace(new, **kept) != old:
        yield _other(gettext("%(slug)s uses a different source, so it measures something else.") % values)


def _of_places(before: PlanSpec, after: PlanSpec) -> Iterator[Change]:
    old, new = location_protection(before), location_protection(after)
    if old is None or new is None:
        if new is not None:
            text = gettext("People now report places; previously, they did not.")
            yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
        if old is not None:
            text = gettext("People no longer report places.")
            yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)
        return
    per_km = gettext("Epsilon per kilometre for reported places")
    yield from _number(
        per_km, 1000 * old.spec.epsilon_per_m, 1000 * new.spec.epsilon_per_m, more_is_weaker=True
    )
    yield from _number(
        gettext("Maximum number of places per person"), old.n_places, new.n_places, more_is_weaker=True
    )
    if old.spec.grid != new.spec.grid:
        yield _other(gettext("The grid on which places are counted changes."))


def _of_slots(before: StudyDefinition, after: StudyDefinition) -> Iterator[Change]:
    old, new = before.slots, after.slots
    if old is None or new is None:
        if new is not None:
            text = gettext("People are now counted by time slot and zone; previously, they were not.")
            yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
        if old is not None:
            text = gettext("People are no longer counted by time slot.")
            yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)
        return
    label = gettext("Time slots counted per person per day")
    yield from _number(label, old.slots_per_day, new.slots_per_day, more_is_weaker=True)
    label = gettext("Epsilon per person per day for counts by time slot")
    yield from _limit(label, old.epsilon_day, new.epsilon_day)
    if old.delta is not None and new.delta is not None and old.delta != new.delta:
        rises = new.delta > old.delta
        yield Change(
            text=_field_words("slots.delta", f"{old.delta:f}", f"{new.delta:f}"),
            direction=Direction.WEAKER if rises else Direction.STRONGER,
            needs_second_person=rises,
        )
    if old.close_after_minutes != new.close_after_minutes:
        text = _field_words("slots.close_after_minutes", old.close_after_minutes, new.close_after_minutes)
        yield _harmless(text)
    for key in ("minutes", "hold_minutes", "levels"):
        was, becomes = getattr(old, key), getattr(new, key)
        if was != becomes:
            yield _other(_field_words(f"slots.{key}", was, becomes))


def _number(
    label: str, old: Decimal | Fraction | int, new: Decimal | Fraction | int, *, more_is_weaker: bool
) -> Iterator[Change]:
    """A number that rose or fell; nothing if it did neither."""
    if old == new:
        return
    rises = new > old
    pattern = gettext("%(label)s rises from %(old)s to %(new)s.")
    if not rises:
        pattern = gettext("%(label)s falls from %(old)s to %(new)s.")
    is_weaker = rises == more_is_weaker
    yield Change(
        text=pattern % {"label": label, "old": _shown(old), "new": _shown(new)},
        direction=Direction.WEAKER if is_weaker else Direction.STRONGER,
        needs_second_person=is_weaker,
    )


def _limit(label: str, old: Decimal | None, new: Decimal | None) -> Iterator[Change]:
    """A limit that may be absent: without it nothing is limited."""
    if old is not None and new is not None:
        yield from _number(label, old, new, more_is_weaker=True)
    elif old is not None:
        text = gettext("%(label)s has been removed. It was %(old)s.") % {"label": label, "old": _shown(old)}
        yield Change(text=text, direction=Direction.WEAKER, needs_second_person=True)
    elif new is not None:
        text = gettext("%(label)s has been added: %(new)s.") % {"label": label, "new": _shown(new)}
        yield Change(text=text, direction=Direction.STRONGER, needs_second_person=False)


def _shown(value: Decimal | Fraction | int) -> str:
    return str(value) if isinstance(value, int) else formats.epsilon(value)


def _field_words(key: str, old: object, new: object) -> str:
    nothing = gettext("nothing")
    values = {"key": key, "old": nothing if old is None else old, "new": nothing if new is None else new}
    if all(isinstance(each, str | int | Decimal | date | None) for each in (old, new)):
        return gettext("%(key)s: previously %(old)s, now %(new)s.") % values
    return gettext("%(key)s has changed.") % values


def _other(pattern: str, old: object = "", new: object = "") -> Change:
    """A change that is neither: someone has to look at it."""
    text = pattern % {"old": old, "new": new} if old or new else pattern
    return Change(text=text, direction=Direction.OTHER, needs_second_person=True)


def _harmless(text: str) -> Change:
    return Change(text=text, direction=Direction.OTHER, needs_second_person=False)
