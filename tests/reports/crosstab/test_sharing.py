"""Share links of cross-tabulations: the question and its table, for people without an account."""

import re

import pytest
from django.urls import reverse

from reports.accounts.access_models import ShareLink
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published
from tests.reports.page_texts import Markup, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/crosstab/"
ASKED = "from=2024-05-31&to=2024-06-01&indicator=age_town&rows=age&only-age=0,1"


def made(reader, query: str, slug: str = "age_town"):
    address = reverse("access:new_share", args=["fair-2024", slug])
    return reader.post(f"{address}?crosstab=on&{query}", {"note": "", "days": 30, "password": ""})


def test_a_link_shows_the_answer_and_the_table_to_anyone(reader, client) -> None:
    published(AGE, TOWN, epsilon="6")
    page = reader.get(f"{PAGE}?{ASKED}")
    links = Markup(page.content.decode()).links
    assert any(link.endswith(f"?crosstab=on&{ASKED}") for link in links)
    token = re.search(r"/shared/([\w-]+)/", made(reader, ASKED).content.decode())[0]
    client.logout()
    answer = client.get(token)
    text, html = words(answer), answer.content.decode()
    sentence = re.search(r"an estimated [\d.]+% of visitors \(95% interval [^)]*\)", words(page))[0]
    assert sentence in text and "Age by Town: shares of all visitors" in text and "2 days" in text
    body = re.search(r"<tbody>.*?</tbody>", html, re.DOTALL)[0]
    assert body == re.search(r"<tbody>.*?</tbody>", page.content.decode(), re.DOTALL)[0]
    assert not [link for link in Markup(html).links if link.startswith(("?", "/studies/"))]
    (link,) = ShareLink.objects.all()
    assert f"{PAGE}?{ASKED}" in reader.get(reverse("access:shares")).content.decode().replace("&amp;", "&")
    assert (link.first_day.isoformat(), link.last_day.isoformat()) == ("2024-05-31", "2024-06-01")


def test_what_is_no_table_gets_no_link(reader) -> None:
    published(GENDER, AGE, TOWN, epsilon="6", n=100)
    for query, slug in (("rows=town&columns=town", "gender_age_town"), ("", "age")):
        assert made(reader, query, slug).status_code == 302
    assert not ShareLink.objects.exists()
