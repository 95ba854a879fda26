"""Pages of profiles: the list, making one from the first rows of a file, and removing it."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mobility.models import Batch, ExtractProfile, VaultStudy
from mobility.profiles.typed import TypedProfile
from tests.mobility.views.small_study import page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
LIST_URL = "/operator/fair/profiles/"
NEW_URL = "/operator/fair/profiles/new/"
PROFILE_URL = "/operator/fair/profiles/operator-x/"
FILE = "ServedMSISDN;StartTime;tranche_age\n" + "".join(
    f"3361234{i % 7:04d};{13 + i % 5}/05/2024 10:00;{('young', 'vieux', 'x')[i % 3]}\n" for i in range(30)
)
CHOSEN = {
    "kind": "events", "name": "operator-x", "delimiter": "semicolon", "max_bad_share": "0.25",
    "role-subscriber": "ServedMSISDN", "role-timestamp": "StartTime", "was-timestamp": "StartTime",
    "timestamp_format": "%d/%m/%Y %H:%M", "column-age": "tranche_age", "was-column-age": "tranche_age",
    "rule-age": "texts", "was-rule-age": "texts", "text-age": ["young", "vieux", "x"],
    "meaning-age": ["=young", "=old", ""], "more-age": "jeune = young\n? =", "otherwise-age": "none",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User, study: VaultStudy) -> None:
    client.force_login(operator)


def look(client: Client, data: str | bytes = FILE, **fields: Any) -> str:
    """What the page shows of a file and of what was chosen."""
    given = data.encode() if isinstance(data, str) else data
    sent = {"sample": SimpleUploadedFile("sample", given), "size": str(len(given)), **fields}
    response = client.post(NEW_URL, sent, headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response.content.decode()


def save(client: Client, **changes: Any) -> Any:
    sent = {"sample": SimpleUploadedFile("sample", FILE.encode()), "size": str(len(FILE)), "action": "save"}
    return client.post(NEW_URL, {**sent, **CHOSEN, **changes}, headers={"HX-Request": "true"})


def chosen(html: str, name: str) -> list[str]:
    """Values of the controls of that name."""
    selects = re.findall(rf'<select [^>]*name="{name}".*?</select>', html, re.S)
    found = [option for select in selects for option in re.findall(r'value="([^"]*)" selected', select)]
    return found or re.findall(rf'<input [^>]*name="{name}" value="([^"]*)"', html)


class TestList:
    def test_built_in_profiles_are_explained(self, client: Client) -> None:
        shown = page(client, LIST_URL)
        assert "as the section [extract] of the study file describes them" in shown
        assert "People who must not be counted" in shown
        assert "None yet" in shown

    def test_made_ones_are_linked(self, client: Client) -> None:
        save(client)
        html = client.get(LIST_URL).content.decode()
        assert f'href="{PROFILE_URL}"' in html
        assert "by olga" in html


class TestNew:
    def test_it_begins_with_a_file(self, client: Client) -> None:
        shown = page(client, NEW_URL)
        assert "1. A file" in shown
        assert "Save the profile" not in shown
        assert "manage.py create_profile fair FILE.toml" in shown

    def test_a_profile_is_proposed(self, client: Client) -> None:
        html = look(client)
        assert chosen(html, "role-subscriber") == ["ServedMSISDN"]
        assert chosen(html, "role-timestamp") == ["StartTime"]
        assert chosen(html, "timestamp_format") == ["%d/%m/%Y %H:%M"]
        assert chosen(html, "column-age") == ["tranche_age"]
        assert chosen(html, "text-age") == ["young", "vieux", "x"]
        assert chosen(html, "meaning-age") == ["=young", "", ""]
        assert "proposed by its name" in html

    def test_identifiers_are_not_in_the_page(self, client: Client) -> None:
        for role in ("role-subscriber", "role-timestamp", "role-cell", "column-age"):
            html = look(client, kind="events", **{role: "ServedMSISDN"})
            assert "1234" not in html, role
            assert "••••" in html

    def test_choices_are_shown_as_they_would_be_read(self, client: Client) -> None:
        html = look(client, **CHOSEN)
        assert chosen(html, "meaning-age") == ["=young", "=old", ""]
        assert "jeune = young" in html
        assert "→ old" in html
        assert "Mon 13 May 2024, 10:00, not a day of the study" in html

    def test_another_column_begins_anew(self, client: Client) -> None:
        html = look(client, **{**CHOSEN, "was-column-age": "StartTime"})
        assert chosen(html, "meaning-age") == ["=young", "", ""]
        assert "jeune = young" not in html

    def test_another_kind_of_rule_shows_its_fields(self, client: Client) -> None:
        html = look(client, **{**CHOSEN, "rule-age": "birth_year"})
        assert chosen(html, "reference-age") == ["2024-05-01"]
        assert len(chosen(html, "band-age")) == 2
        assert "text-age" not in html
        html = look(client, **{**CHOSEN, "rule-age": "prefix"})
        assert chosen(html, "prefix-age") == ["2"]
        assert chosen(html, "text-age") == ["yo", "vi", "x"]

    def test_beginnings_of_another_length_are_chosen_anew(self, client: Client) -> None:
        fields = {
            "rule-age": "prefix", "was-rule-age": "prefix", "prefix-age": "3", "text-age": ["yo", "vie"],
            "meaning-age": ["=young", "=old"], "more-age": "",
        }  # fmt: skip
        html = look(client, **{**CHOSEN, **fields})
        assert chosen(html, "text-age") == ["you", "vie", "x"]
        assert chosen(html, "meaning-age") == ["", "=old", ""]

    def test_another_time_column_is_looked_at_anew(self, client: Client) -> None:
        html = look(client, **{**CHOSEN, "was-timestamp": "", "timestamp_format": "iso"})
        assert chosen(html, "timestamp_format") == ["%d/%m/%Y %H:%M"]

    def test_an_order_that_could_be_either_is_asked(self, client: Client) -> None:
        html = look(client, "msisdn,time\nx,01/02/2024 10:00\n")
        assert chosen(html, "timestamp_format") == [""]
        assert ">%d/%m/%Y %H:%M (day first)<" in html
        assert ">%m/%d/%Y %H:%M (month first)<" in html
        assert "Is the day or the month first?" in html

    def test_extracts_of_subscribers_have_no_times(self, client: Client) -> None:
        html = look(client, "msisdn,age\nx,young\n")
        assert chosen(html, "kind") == ["subscribers"]
        assert "role-timestamp" not in html

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"PK\x03\x04", "a zip archive or a spreadsheet"),
            (b"a,b\n", "a header and no rows"),
            (b"a,b\n1,2,3\n", "1 row does not have as many columns as the header"),
        ],
    )
    def test_what_is_odd_about_a_file_is_said(self, client: Client, data: bytes, words: str) -> None:
        assert words in text_of(look(client, data))

    def test_without_a_file_it_asks_for_one(self, client: Client) -> None:
        response = client.post(NEW_URL, CHOSEN, headers={"HX-Request": "true"})
        assert "Choose a file first." in response.content.decode()

    def test_what_a_file_says_is_text_and_not_a_page(self, client: Client) -> None:
        html = look(client, '<b>id</b>,time,age\nx,2024-05-01T10:00,"<script>"\n')
        assert "<script>" not in html
        assert "<b>id" not in html


class TestSave:
    def test_it_is_kept_as_chosen(self, client: Client) -> None:
        response = save(client)
        assert response.headers["HX-Redirect"] == PROFILE_URL
        row = ExtractProfile.objects.get()
        typed = TypedProfile.from_json(row.definition)
        assert (row.created_by, typed.subscriber, typed.timestamp) == ("olga", "ServedMSISDN", "StartTime")
        assert (typed.delimiter, str(typed.max_bad_share)) == ("semicolon", "0.25")
        assert typed.rules["age"].values == {"vieux": "old", "jeune": "young", "?": ""}
        assert typed.rules["age"].otherwise == ""

    def test_ages_by_year_of_birth(self, client: Client) -> None:
        fields = {
            "rule-age": "birth_year", "was-rule-age": "birth_year", "band-age": ["0-39", "40+"],
            "reference-age": "2024-05-01", "more-age": "",
        }  # fmt: skip
        assert "HX-Redirect" in save(client, **fields).headers
        birth = TypedProfile.from_json(ExtractProfile.objects.get().definition).rules["age"].birth
        assert birth is not None
        assert birth.bands == {"young": (0, 39), "old": (40, None)}

    @pytest.mark.parametrize(
        ("changes", "near", "words"),
        [
            ({"name": ""}, "Name of the profile", "is missing"),
            ({"name": "default"}, "Name of the profile", "is a built-in profile"),
            ({"max_bad_share": "many"}, "share of rejected rows", "must be a number from 0 to 1"),
            ({"role-subscriber": ""}, "Subscriber", "is missing"),
            ({"timestamp_format": ""}, "Times are written as", "must not be empty"),
            ({"timestamp_format": "pattern", "timestamp_pattern": "%d"}, "Pattern of the times", "must be"),
            ({"column-age": "StartTime", "was-column-age": "StartTime"}, "Column", "must be a column of its own"),
            ({"more-age": "what"}, "age", "must have text = category in every line"),
            ({"more-age": "x = ancient"}, "age", '"x" unknown category'),
            ({"rule-age": "birth_year", "was-rule-age": "birth_year", "band-age": ["0-39", "old"]}, "age", "must be ages as 18-24"),
            ({"rule-age": "birth_year", "was-rule-age": "birth_year", "band-age": ["0-39", "41+"], "reference-age": "2024-05-01"}, "age", "no band holds age 40"),
            ({"rule-age": "birth_date", "was-rule-age": "birth_date", "band-age": ["0-39", "40+"], "reference-age": "2024-05-01"}, "Dates are written as", "must"),
            ({"rule-age": "prefix", "was-rule-age": "prefix", "prefix-age": "two", "more-age": ""}, "Leading characters", "must be a whole number"),
        ],
    )  # fmt: skip
    def test_errors_stand_at_their_field(
        self, client: Client, changes: dict[str, Any], near: str, words: str
    ) -> None:
        html = save(client, **changes).content.decode()
        assert "Nothing was saved." in html
        blocks = [
            block
            for block in re.split(r'<div class="field|<fieldset|<h3>', html)
            if words in text_of(unescaped(block))
        ]
        assert blocks, text_of(html)
        assert any(near in unescaped(block) for block in blocks)
        assert not ExtractProfile.objects.exists()

    def test_a_name_that_is_taken_is_refused(self, client: Client) -> None:
        save(client)
        html = save(client).content.decode()
        assert "has a profile &#x27;operator-x&#x27; already" in html
        assert ExtractProfile.objects.count() == 1


class TestProfile:
    def test_it_says_how_files_are_read_and_what_comes_next(self, client: Client) -> None:
        save(client)
        shown = page(client, PROFILE_URL)
        assert "vieux → old" in shown
        assert "any other text → no answer" in shown
        assert "The profile was saved." in shown
        html = client.get(PROFILE_URL).content.decode()
        assert '"/operator/fair/?profile=operator-x&amp;validate_only=1#upload-title"' in html

    def test_an_unused_one_can_be_removed(self, client: Client) -> None:
        save(client)
        response = client.post(f"{PROFILE_URL}delete/", follow=True)
        assert "The profile operator-x was removed." in response.content.decode()
        assert not ExtractProfile.objects.exists()

    def test_one_that_a_batch_was_read_with_stays(self, client: Client, study: VaultStudy) -> None:
        save(client)
        Batch.objects.create(study=study, profile="operator-x")
        assert "1 batch was read with it, so it stays" in page(client, PROFILE_URL)
        assert "Remove the profile" not in page(client, PROFILE_URL)
        assert "operator-x" in client.post(f"{PROFILE_URL}delete/", follow=True).content.decode()
        assert ExtractProfile.objects.exists()

    def test_unknown_ones_are_not_found(self, client: Client) -> None:
        for url in (PROFILE_URL, "/operator/other/profiles/", "/operator/other/profiles/new/"):
            assert client.get(url).status_code == 404
        assert client.post(f"{PROFILE_URL}delete/").status_code == 404


class TestWho:
    @pytest.mark.parametrize("url", [LIST_URL, NEW_URL, PROFILE_URL])
    def test_only_operators(self, client: Client, analyst: User, stranger: User, url: str) -> None:
        save(client)
        for user in (analyst, stranger):
            client.force_login(user)
            assert client.get(url).status_code == 404
            assert client.post(NEW_URL, CHOSEN).status_code == 404
            assert client.post(f"{PROFILE_URL}delete/").status_code == 404
        client.logout()
        assert client.get(url).status_code == 302
        assert ExtractProfile.objects.exists()


def unescaped(html: str) -> str:
    return html.replace("&quot;", '"').replace("&#x27;", "'")
