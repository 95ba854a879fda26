"""The page of the simulator: where it begins, what it answers, and that its address is all of its state."""

import re
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mobility.models import PlanDraft, VaultStudy
from mobility.services.drafts import draft_new_study
from reports.studyfile import parse_study
from tests.mobility.views.small_study import STUDY, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
URL = "/administrator/simulator/"


@pytest.fixture(autouse=True)
def _signed_in(client: Client, administrator: User, data_dir: Path) -> None:
    client.force_login(administrator)


def html_of(client: Client, query: str = "", **headers: str) -> str:
    response = client.get(URL + query, headers=headers)
    assert response.status_code == 200
    return str(response.content.decode())


def shown(client: Client, query: str = "", **headers: str) -> str:
    return unescape(text_of(html_of(client, query, **headers)))


def value_of(html: str, name: str) -> str:
    field = re.search(rf'<input[^>]*name="{name}"[^>]*>', html)
    assert field is not None
    value = re.search(r'value="([^"]*)"', field[0])
    return "" if value is None else value[1]


def links(html: str, words: str) -> list[str]:
    """Addresses of links with these words."""
    return [unescape(found) for found in re.findall(rf'<a href="([^"]*)">{words}</a>', html)]


class TestBeginnings:
    def test_with_nothing_it_asks_made_up_questions(self, client: Client) -> None:
        text = shown(client)
        assert "What if?" in text
        assert "With 10 000 visitors a day, shares are known to about ± 8.2 points." in text
        assert "Indicator 5" in text

    def test_of_a_study_it_asks_its_questions_under_its_plan(self, client: Client, study: VaultStudy) -> None:
        html = html_of(client, "?study=fair")
        assert value_of(html, "epsilon") == "1"
        assert [value_of(html, f"k-{slug}") for slug in ("age", "visit_duration")] == ["2", "10"]
        assert value_of(html, "study") == "fair"
        assert "Fair &amp; market: what if?" in html
        assert links(html, "Fair &amp; market") == ["/administrator/fair/"]
        assert "Try it" in html

    def test_own_epsilons_of_a_study_stay(self, client: Client, study: VaultStudy) -> None:
        text = shown(client, "?study=fair&visitors=5000&show=visit_duration")
        # epsilon 0.5 and ten categories
        assert "The true answer is kept in 15 of 100 cases; each other category" in text

    def test_of_a_draft_it_asks_what_is_drafted(self, client: Client) -> None:
        text = STUDY.replace("epsilon = 1.0", "epsilon = 2.5").replace(
            "expected_subscribers = 10", "expected_subscribers = 3000"
        )
        definition = parse_study(text.encode(), filename="study.toml", read=lambda _: b"")
        draft = draft_new_study(definition, by="adam")
        html = html_of(client, f"?draft={draft.pk}")
        assert value_of(html, "epsilon") == "2.5"
        assert value_of(html, "draft") == str(draft.pk)
        # 3,000 in 3 days, each on 1.5 days
        assert value_of(html, "visitors") == "1500"
        assert PlanDraft.objects.count() == 1

    @pytest.mark.parametrize("query", ["?study=nothing", "?draft=99", "?draft=x", "?draft="])
    def test_what_does_not_exist_is_not_found(self, client: Client, query: str) -> None:
        assert client.get(URL + query).status_code == 404

    def test_pages_of_studies_lead_here(self, client: Client, study: VaultStudy) -> None:
        for page in ("/administrator/", "/administrator/fair/"):
            assert f'href="{URL}' in client.get(page).content.decode()


class TestState:
    def test_every_number_of_the_address_counts(self, client: Client) -> None:
        query = (
            "?mechanism=spl-grr&unit=attribute&epsilon=2&visitors=3000&stay=2&days=4&indicators=2&daily=1"
            "&categories=5&cap=2"
        )
        html = html_of(client, query)
        assert [value_of(html, name) for name in ("epsilon", "visitors", "stay", "days", "categories")] == [
            "2", "3000", "2", "4", "5",
        ]  # fmt: skip
        text = text_of(html)
        assert "Indicator 2 (daily)" in text
        assert "6 000 different visitors" in text
        assert "none: not everyone answers every day" in text
        assert "1 500" in text  # reports of the daily one: 2 days of 4

    def test_links_keep_the_state_but_for_what_they_change(self, client: Client, study: VaultStudy) -> None:
        html = html_of(client, "?study=fair&visitors=5000&k-age=4&mechanism=smp-oue")
        tried = [link for link in links(html, "Try it") if "mechanism=spl-grr" in link]
        assert len(tried) == 1
        assert {"study=fair", "visitors=5000", "k-age=4"} < set(tried[0].removeprefix("?").split("&"))
        other = html_of(client, tried[0])
        assert value_of(other, "visitors") == "5000"
        assert re.search(r'value="spl-grr" selected', other)

    def test_htmx_gets_the_result_only(self, client: Client) -> None:
        html = html_of(client, "?epsilon=2", **{"HX-Request": "true"})
        assert "<html" not in html
        assert "What could be read" in html
        assert 'id="figure"' in html

    def test_nothing_is_written_and_nothing_posted(self, client: Client) -> None:
        assert client.post(URL, {"epsilon": "2"}).status_code == 405


class TestMistakes:
    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("?epsilon=0", "Epsilon: Ensure this value is greater than or equal to 0.001."),
            ("?epsilon=21", "Epsilon: Ensure this value is less than or equal to 20."),
            ("?epsilon=NaN", "Epsilon: Enter a number."),
            ("?visitors=", "Visitors a day: This field is required."),
            ("?visitors=0", "Visitors a day: Ensure this value is greater than or equal to 1."),
            ("?stay=8", "Nobody is present on more days than the study has: at most 7."),
            ("?cap=8", "There are not so many days in the study: at most 7."),
            ("?daily=6", "There are not so many indicators."),
            ("?mechanism=none", "Mechanism: Select a valid choice."),
            ("?presence_epsilon=1&presence_days=8", "There are not so many days in the study: at most 7."),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_simulated(
        self, client: Client, query: str, words: str
    ) -> None:
        text = shown(client, query)
        assert words in text
        assert "What could be read" not in text

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("?mechanism=rsfd-grr&unit=attribute&daily=1", "must be static"),
            ("?mechanism=smp-oue&presence_epsilon=1", "presence_epsilon must be absent under smp-oue"),
            ("?mechanism=spl-grr&epsilon=0.001&indicators=50&unit=profile&categories=1000", "kept in"),
        ],
    )
    def test_what_no_mechanism_can_do_is_no_crash(self, client: Client, query: str, words: str) -> None:
        assert words in shown(client, query)


class TestOtherWay:
    def test_a_wanted_error_leads_to_its_epsilon(self, client: Client) -> None:
        query = "?visitors=10000&mechanism=smp-grr&indicators=2&categories=4&wanted=3"
        html = html_of(client, query)
        found = re.search(r"Epsilon ([\d.]+) would do: it is the smallest", html)
        assert found is not None
        (use,) = links(html, "Use it")
        assert f"epsilon={found[1]}" in use
        assert "wanted" not in use
        assert "± 3.0 points" in shown(client, use)
        assert float(found[1]) > 0.5

    def test_what_cannot_be_reached_says_what_can(self, client: Client) -> None:
        assert "No epsilon up to 20 is so exact: the best is ±" in shown(client, "?visitors=100&wanted=0.01")

    def test_an_indicator_with_its_own_epsilon_is_not_asked_for(
        self, client: Client, study: VaultStudy
    ) -> None:
        text = shown(client, "?study=fair&wanted=5&of=visit_duration")
        assert "This indicator has an epsilon of its own" in text

    def test_the_union_needs_less(self, client: Client) -> None:
        day, union = (
            re.search(r"Epsilon ([\d.]+) would do", shown(client, f"?wanted=3{over}"))
            for over in ("", "&over=union")
        )
        assert day is not None
        assert union is not None
        assert Decimal(union[1]) < Decimal(day[1])


def test_hopeless_settings_are_said_in_words_with_what_would_help(client: Client) -> None:
    html = html_of(client, "?visitors=1000&categories=22&epsilon=0.5")
    text = unescape(text_of(html))
    assert "every bar of a day would be noise" in text
    assert "More visitors: about" in text
    more = next(link for link in links(html, "Try it") if "visitors=1000&" not in link)
    assert "every bar of a day would be noise" not in shown(client, more)


def test_nobody_answers_one_of_very_many(client: Client) -> None:
    assert "Nobody would answer this indicator" in shown(client, "?visitors=1&indicators=50&stay=1")


def test_both_ends_of_every_slider_are_named(client: Client) -> None:
    html = html_of(client)
    sliders = re.findall(r'<input class="slider".*?</p>', html, re.S)
    assert len(sliders) == 5
    for slider in sliders:
        small, large = re.findall(r"(?:small|large): *</span>(?:<span[^>]*>← </span>)?([^<]+)", slider)
        assert small.strip()
        assert large.strip()
        assert small != large
