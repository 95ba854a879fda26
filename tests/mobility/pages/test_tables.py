"""A table that waits for a second person: what they see of it, and what they decide."""

import pytest
from django.urls import reverse

from mobility.models import TableRequest
from reports.studies.policies import Role
from tests.mobility.pages.conftest import TABLE_FACTS, TABLE_OPTIONS
from tests.mobility.pages.pages import IN_BOTH, html_of, lacks, page, said, says
from tests.reports.page_texts import signed_in

pytestmark = [IN_BOTH]
PAGE = "/administrator/fair/"


@pytest.fixture
def asked(study):
    return TableRequest.objects.create(
        study=study, file_name="calls <1>.csv", file_sha256="c0ffee" * 10, options=TABLE_OPTIONS,
        facts=TABLE_FACTS, asked_by="adam",
    )  # fmt: skip


@pytest.fixture
def petra(person):
    return signed_in(person("petra", Role.PRIVACY_OFFICER))


def decide(client, asked, answer):
    url = reverse("administrator:decide_table", args=["fair", asked.pk])
    return said(client.post(url, {"answer": answer}, follow=True))


def test_another_person_sees_what_is_asked_for_and_approves(asked, petra, person):
    says(
        page(petra, PAGE), "add noise to the places in calls &lt;1&gt;.csv", "Requested by adam at",
        "The file has 1,200 rows, with 1,100 different values in call .",
        "by a factor of at most 3 for each 200 m between the centres of their squares (epsilon 0.005493 per",
        "The noise moves positions by 364 m on average, and 95% of them by less than 864 m",
        "Columns that stay unchanged: minutes , note", "Columns left out: city",
        "computed from the new positions: distance_to_centre_m", "c0ffee" * 10,
        "These columns could not be compared with the places, or follow from them in part: note.",
        "Epsilon is per id: a person with several ids loses the sum.",
    )  # fmt: skip
    title = "Decide whether to release the sanitised table calls &lt;1&gt;.csv of Fair &amp; market"
    says(html_of(petra, "/"), f'href="{PAGE}">{title}<')
    own = signed_in(person("adam", Role.ADMINISTRATOR))
    says(page(own, PAGE), "adam made this request, so another person must approve it.")
    lacks(page(own, PAGE), "Approve this table")
    lacks(page(own, "/"), "Decide whether to release")
    assert "adam made this request" in decide(own, asked, "approve")
    assert "If the command that requested it is run again" in decide(petra, asked, "approve")
    lacks(page(petra, PAGE), "Approval needed to release")
    assert "petra has already approved or refused this request" in decide(petra, asked, "refuse")


def test_anyone_may_refuse(asked, petra):
    assert "The table will not be written." in decide(petra, asked, "refuse")
    asked.refresh_from_db()
    assert (asked.is_approved, asked.decided_by) == (False, "petra")
