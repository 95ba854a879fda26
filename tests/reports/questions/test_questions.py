"""The page of questions: each link answers, and what is missing is said with the keys that it needs."""

import re

import pytest
from django.urls import reverse

from reports.help.rendering import chapter
from reports.questions.answers import QUESTIONS, answers
from reports.questions.facts import Facts
from tests.reports import map_factory, slot_factory
from tests.reports import report_factory as factory
from tests.reports.flows.conftest import DAY_ZONE
from tests.reports.page_texts import get, page, text_of

pytestmark = pytest.mark.django_db
TRIP = factory.joint("trip", map_factory.HOME, DAY_ZONE, kind="daily")
BY_ZONE = factory.indicator(
    "by_zone", *(str(code) for code in range(3 * (len(DAY_ZONE.categories) + 1))),
    kind="daily", column=None, parts=("length", DAY_ZONE.slug),
)  # fmt: skip
EVERYTHING = {"area": map_factory.area(), "location": map_factory.LOCATION, "slots": slot_factory.DEFINITION}
EVERYTHING |= {"tallies": ("visits",), "days": 14}
ALWAYS = ("How many visitors are there", "What share of visitors")
OF_NUMBERS = dict.fromkeys(("What share", "how many return"), "categories")
OVER_DAYS = ("present on exactly", "how many return", "two date ranges")


def found_for(study) -> dict[str, object]:
    return {each.question: each for each in answers(Facts(study))}


def test_a_study_with_everything_answers_all_and_each_link_leads_to_a_page(reader) -> None:
    seen = factory.visits("seen", "places", *map_factory.ZONES)
    study = factory.create(map_factory.HOME, DAY_ZONE, TRIP, factory.LENGTH, BY_ZONE, seen, **EVERYTHING)
    assert [each for each in answers(Facts(study)) if each.missing or not each.links] == []
    html = page(reader, "questions")
    assert "Questions that this study does not answer" not in html
    links = set(re.findall(r"<dd>(.*?)</dd>", html, re.DOTALL))
    addresses = {address for each in links for address in re.findall(r'href="([^"]+)"', each)}
    assert len(addresses) > len(QUESTIONS)
    assert [address for address in addresses if reader.get(address).status_code != 200] == []


def test_the_plainest_study_says_what_is_missing_and_where_to_read_about_it(reader) -> None:
    study = factory.create(factory.GENDER, days=1)
    found = answers(Facts(study))
    assert next(each.question for each in found if each.links and each.missing is None).startswith(ALWAYS[0])
    assert len([each for each in found if not each.links]) == len(QUESTIONS) - len(ALWAYS)
    html = page(reader, "questions")
    for each in found:
        if each.missing:
            assert each.missing.why in text_of(html).replace("&#x27;", "'")
            assert f'id="{each.missing.anchor}"' in chapter(each.missing.chapter).body, each.question
            assert f'{reverse("help", args=[each.missing.chapter])}#{each.missing.anchor}"' in html
    assert "<code>[slots]</code>, <code>[area] zones</code>" in html


@pytest.mark.parametrize(
    ("indicators", "changes", "answered", "missing"),
    [
        ((factory.GENDER, factory.AGE), {}, OVER_DAYS, {"attributes": "parts", "average": 'kind = "number"'}),
        ((factory.GENDER, factory.AGE, factory.BOTH), {}, ("attributes",), {"one zone to another": "parts"}),
        ((factory.GENDER, factory.HALF_STAY), {}, ("What share",), {"What share": "max_values"}),
        ((factory.GENDER,), {}, ("present on exactly",), {"present on exactly": 'tallies = ["visits"]'}),
        ((factory.GENDER,), {"days": 13}, OVER_DAYS, {"expected in": "days"}),
        ((factory.LENGTH,), {}, OVER_DAYS[::2], OF_NUMBERS),
    ],
)
def test_each_part_of_a_plan_answers_its_question(indicators, changes, answered, missing) -> None:
    found = found_for(factory.create(*indicators, **changes))
    assert all(each.links or each.missing for each in found.values())
    for words in answered:
        assert next(each.links for text, each in found.items() if words in text), words
    for words, key in missing.items():
        assert key in next(each.missing.keys for text, each in found.items() if words in text), words


def test_presence_noise_is_named_where_it_rules_an_answer_out() -> None:
    study = factory.create_noisy(presence_days=2)
    reasons = {each.question: each.missing.keys for each in answers(Facts(study)) if not each.links}
    assert reasons["How many visitors are new, and how many return?"] == ("presence_epsilon",)
    assert reasons["How many people are present on exactly N days?"] == ("presence_days",)


def test_pages_that_have_nothing_lead_to_the_questions(reader, fair) -> None:
    link = f'href="{reverse("reports:questions", args=["fair-2024"])}"'
    for name, *args in (("study",), ("flows",), ("crosstab",), ("scenario", "stay"), ("forecast",)):
        assert link in get(reader, name, *args).content.decode(), name
