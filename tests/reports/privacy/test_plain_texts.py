"""Privacy in three sentences on shared pages and in files of boards, for every kind of plan."""
# ruff: noqa: E501  (a table reads best with one row a line)

import re
from dataclasses import replace
from decimal import Decimal

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from reports.base import formats
from reports.privacy.plain_texts import plain_privacy
from reports.privacy.statement.document import certified, privacy_statement, protections
from reports.studies.queries import current_plan
from reports.transfer.studies import create_study_rows
from tests.mobility.event_study import TEXT_OF_PEOPLE, event_definition
from tests.reports import map_factory, slot_factory
from tests.reports import report_factory as factory
from tests.reports.classes.test_classes import class_definition
from tests.reports.estimates.test_sensitive import TODAY, open_definition
from tests.reports.estimates.test_told_groups import ZONE

pytestmark = pytest.mark.django_db
GENDER, AGE, STAY = factory.GENDER, factory.AGE, factory.STAY
PRESENT = "Not protected: who was present and on which days, because visitor totals are exact."
CHANGES = f"{PRESENT[:-1]}; whether a person's daily value changes from one day to the next."
ONE = "“Gender” is at most 1, because each person gives one answer."
HEAD = "The privacy loss (epsilon) of one person's answers on "
WAVE = replace(
    factory.LENGTH, kind="static", column="length", derive=None, scale=replace(factory.SCALE, report="wave")
)
STREAM = replace(factory.definition(mechanism="smp-stream").plan, window_days=3)
TRIPS = factory.moves("trips", *map_factory.ZONES)


def of(*asked, **changes):
    return factory.create(*asked, **changes)


def made(definition):
    return create_study_rows(definition, by="adam")


# By name: maker of the study, indicators of a page, three sentences.
PLANS = {
    "static": (lambda: of(GENDER, STAY), "gender", "About 58 of 100 answers on “Gender” are true.", HEAD + ONE, PRESENT),
    "daily": (
        lambda: of(GENDER, STAY, days=7), "stay",
        "About 73 of 100 answers on “Stay” are true.",
        HEAD + "“Stay” is at most 7, because each person gives at most 7 daily answers of epsilon 1 each.", CHANGES,
    ),
    "both": (
        lambda: of(GENDER, STAY), "gender stay",
        "About 73 of 100 answers on “Stay” are true.",
        HEAD[:-4] + " is highest on “Stay”, where it is at most 4, because each person gives at most 4 daily answers of epsilon 1 each.", CHANGES,
    ),
    "one_day": (lambda: of(GENDER, STAY, days=1), "stay", "About 73 of 100 answers on “Stay” are true.", HEAD + "“Stay” is at most 1, because each person gives one answer.", PRESENT),
    "sets": (lambda: of(factory.MANY, mechanism="smp-oue"), "region", "About 50 of 100 answers on “Region” include the true category.", HEAD + "“Region” is at most 1, because each person gives one answer.", PRESENT),
    "number": (
        lambda: of(GENDER, factory.LENGTH), "length",
        "About 73 of 100 answers on “Length” are true.",
        HEAD + "“Length” is at most 2, because each person gives at most 2 different answers of epsilon 1 each.", CHANGES,
    ),
    "wave": (lambda: of(GENDER, WAVE), "length", None, HEAD + "“Length” is at most 1, because each person gives one answer.", PRESENT),
    "question": (
        lambda: of(STAY, mechanism="smp-question"), "stay", None,
        HEAD + "“Stay” is at most 2, because each person gives at most 2 different answers of epsilon 1 each.", CHANGES,
    ),
    "renewed": (lambda: of(GENDER, mechanism="smp-allomfree", epsilon="2"), "gender", None, HEAD + "“Gender” is at most 1.9796, because the reports of all days add new noise to one kept answer.", PRESENT),
    "hashed": (
        lambda: of(STAY, mechanism="smp-loloha", epsilon="2", days=7), "stay", None,
        HEAD + "“Stay” is at most 3.8735, because the answers name at most 2 sets of categories, with an epsilon of at most 1.9997 each.", CHANGES,
    ),
    "stream": (
        lambda: of(STAY, plan=STREAM, days=7), "stay", None,
        HEAD + "“Stay” is at most 3, because each person gives at most 3 daily answers of epsilon 1 each.", PRESENT,
    ),
    "moves": (
        lambda: of(map_factory.HOME, TRIPS, area=map_factory.area()), "trips", None,
        HEAD + "“Trips” is at most 4, because each person gives at most 4 daily answers of epsilon 1 each.", PRESENT,
    ),
    "all_answered": (
        lambda: of(GENDER, STAY, mechanism="spl-grr", epsilon="5"), "gender", None,
        HEAD + "“Gender” is at most 2.5 (12.5 with the other indicators), because each person gives one answer.", PRESENT,
    ),
    "sum": (
        lambda: of(GENDER, STAY, mechanism="spl-grr", epsilon="5"), "gender stay", None,
        "The privacy loss (epsilon) of all answers of one person is at most 12.5, the sum of their epsilons: 2.5 + 4 \u00d7 2.5.", CHANGES,
    ),
    "fakes": (
        lambda: of(GENDER, AGE, mechanism="rsfd-grr"), "gender",
        "About 58 of 100 real answers on “Gender” are true.",
        "The privacy loss (epsilon) of all reports of one person is at most 1, because each person gives real answers on one indicator only; the other reports are random.", PRESENT,
    ),
    "presence": (
        factory.create_noisy, "gender", None,
        HEAD + ONE.replace("most 1", "most 3"),
        "Noise in the totals also protects whether a person was present, with an epsilon of 2.",
    ),
    "presence_and_changes": (
        factory.create_noisy, "stay", None,
        HEAD + "“Stay” is at most 12, because each person gives at most 4 daily answers of epsilon 3 each.",
        "Noise in the totals also protects whether a person was present, with an epsilon of 2, but not: whether a person's daily value changes from one day to the next.",
    ),
    "slots": (slot_factory.create, "gender", None, HEAD + ONE, PRESENT),
    "classes": (
        lambda: made(class_definition()), "gender",
        "At most about 91 of 100 answers on “Gender” are true.",
        HEAD + ONE.replace("most 1", "most 3"), f"{PRESENT[:-1]}; the class of each person.",
    ),
    "sensitive": (
        lambda: made(open_definition(TODAY)), "today", "About 58 of 100 people with a sensitive category of “Today” give it.",
        HEAD + "“Today” is at most 4 for what is protected, because each person gives at most 4 daily answers of epsilon 1 each.",
        f"{PRESENT[:-1]}; categories of “Today” that are not sensitive; whether a person's daily value changes from one day to the next.",
    ),
    "groups": (
        lambda: made(replace(factory.definition(ZONE), plan=replace(factory.definition().plan, discloses_values=True))), "zone", None,
        HEAD + "“Zone” is at most 1 for what is protected, because each person gives one answer.",
        f"{PRESENT[:-1]}; the group of each person's category of “Zone”.",
    ),
    "events": (
        lambda: made(event_definition()),
        "reason",
        "About 58 of 100 answers on “Reason” are true.",
        "The privacy loss (epsilon) of an event's answer on “Reason” is at most 1, because each event gives one answer.",
        "Not protected: whether and on which day an event took place, because totals are exact; all of a person's events together, because their epsilons add up without a limit.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "shown", "truth", "loss", "limits"), PLANS.values(), ids=PLANS)
def test_the_sentences_are_those_of_the_plan(make, shown, truth, loss, limits) -> None:
    plan = current_plan(make())
    found = plain_privacy(plan, shown.split())
    assert [found["loss_words"], found["open_words"]] == [loss, limits]
    assert found["truth_words"].endswith(" The figures are corrected for this noise.")
    assert not truth or found["truth_words"].startswith(truth)
    kept, of_100 = map(int, re.findall(r"\d+", found["truth_words"])[:2])
    assert (kept, of_100) == (found["protection"].kept_of_100, 100)
    assert [text.count(".") - len(re.findall(r"\d\.\d", text)) for text in (found["loss_words"], limits)] == [
        1,
        1,
    ]


def test_undone_days_add_answers_and_show_changes_between_their_versions() -> None:
    kept, renewed = current_plan(of(GENDER, STAY)), current_plan(of(STAY, plan=STREAM, slug="stream"))
    kept.voided_days = renewed.voided_days = 2
    assert (
        "is at most 6, because each person gives at most 6 daily"
        in plain_privacy(kept, ["stay"])["loss_words"]
    )
    words = "; whether a value changed between the two versions of a day that was undone."
    assert plain_privacy(renewed, ["stay"])["open_words"] == PRESENT[:-1] + words
    assert plain_privacy(kept, ["gender"])["open_words"] == PRESENT


def test_losses_of_places_and_time_slots_stand_in_the_details() -> None:
    """Time slots have the last row of the statement; four places lose 4 x 5 ln 4 over a kilometre."""
    noisy, exact = slot_factory.create(slug="a"), slot_factory.create(slot_factory.without_noise(), slug="b")
    places = of(GENDER, area=map_factory.area(), location=map_factory.LOCATION, slug="c")
    said = {study.slug: plain_privacy(current_plan(study), ["gender"]) for study in (noisy, exact, places)}
    slots = privacy_statement(noisy)["slots"]["losses"][-1]
    absent, moved = (formats.epsilon(Decimal(slots[each]["epsilon"])) for each in ("absent", "moved"))
    first, second = said["a"]["other_losses"]
    assert f"at most {absent} for whether a person was in these counts, and at most {moved}" in first
    assert Decimal(1) < Decimal(absent) < Decimal(moved)
    assert "no presence noise, so whether a person was present on a given day is not protected" in second
    assert "the counts by slot and zone are exact" in " ".join(said["b"]["other_losses"])
    assert "places 1 km apart on each day. For telling them apart, epsilon is at most 27.7259." in " ".join(
        said["c"]["other_losses"]
    )
    html = render_to_string("privacy/_plain.html", said["a"])
    opened, folded = html.split("<details>")
    assert "time slot" not in opened and first in folded and opened.count("<p>") == 2


def test_one_limit_of_all_shown_indicators_is_no_highest_one() -> None:
    words = plain_privacy(current_plan(of(GENDER, AGE)), ["gender", "age"])["loss_words"]
    assert "on any of these indicators is at most 1, because each person gives one answer." in words


def test_details_of_events_name_the_limit_of_a_person() -> None:
    plan = current_plan(made(event_definition(TEXT_OF_PEOPLE)))
    found = plain_privacy(plan, ["reason"])
    epsilon = formats.epsilon(certified(plan)[1].epsilon_person)
    n = plan.parsed.max_events
    assert n > 1
    (said,) = found["other_losses"]
    assert said == (
        f"At most {n} events of a person are answered. For all of them together, epsilon is at most {epsilon}."
    )
    html = render_to_string("privacy/_plain.html", found)
    assert (
        said in html
        and "a person's values" not in html
        and "the number of a person's events" in found["open_words"]
    )


def test_the_picture_has_as_many_dots_as_answers_are_true() -> None:
    gender = protections(current_plan(of(GENDER, STAY)))["gender"]  # e / (e + 2) = 0.576
    assert sum(dot.is_true for dot in gender.dots) == gender.kept_of_100 == 58
    assert len({(dot.x, dot.y) for dot in gender.dots}) == 100


def test_a_board_without_indicators_speaks_of_all_of_the_study() -> None:
    plan = current_plan(of(GENDER, STAY, days=7))
    assert "highest on “Stay”, where it is at most 7," in plain_privacy(plan, {""})["loss_words"]
    with translation.override("fr"):
        assert "«\u00a0" in plain_privacy(plan, {""})["loss_words"]
