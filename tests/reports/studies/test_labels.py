"""Lists show the short name of studies that share their name with another one open to the reader."""

import pytest
from django.urls import reverse

from reports.estimates.queries import Window
from reports.sharing import actions as access
from reports.studies.labels import label_of
from reports.studies.policies import Role
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in, words

LISTS = (
    "reports:studies",
    "access:tokens",
    "access:shares",
    "people:people",
    "people:matrix",
    "budget:budget",
)


@pytest.fixture
def twins(db):
    return [factory.published(slug=slug, name="The fair") for slug in ("fair-a", "fair-b")]


def test_a_name_that_is_shared_has_the_short_name_beside_it_for_those_who_see_both(twins, person):
    other = factory.published(slug="market", name="The market")
    both = person("bea", Role.ANALYST)
    assert [label_of(each, both) for each in twins] == ["The fair (fair-a)", "The fair (fair-b)"]
    assert label_of(other, both) == "The market"
    assert label_of(twins[0], person("ann", Role.ANALYST, studies=twins[:1])) == "The fair"


@pytest.mark.parametrize("name", LISTS)
def test_lists_tell_studies_of_the_same_name_apart(name, twins, person):
    boss = person("bea", Role.ADMINISTRATOR, Role.ANALYST)
    client = signed_in(boss)
    for each in twins:
        access.create_token(name=f"of {each.slug}", days=1, study=each, by=boss)
        gender = each.indicators.get(slug="gender")
        access.create_link(gender, Window(1, 1), query="", days=1, note="", password="", by=boss)
        person(f"viewer-{each.slug}", Role.VIEWER, studies=[each])
    shown = words(client.get(reverse(name)))
    assert "The fair (fair-a)" in shown, shown
    assert "The fair (fair-b)" in shown, shown
