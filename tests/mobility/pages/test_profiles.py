"""Pages of profiles: the list, making one from the first rows of a file, and removing it."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from mobility.extracts.profiles.sample import read_sample
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import Batch, ExtractProfile
from mobility.plans.studies import create_study
from mobility.uploads.profile_pages.copies import free_name
from mobility.uploads.profile_pages.texts import class_warnings, missing_parts
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.mobility.pages.pages import AS_OPERATOR, html_of, lacks, page, says, text_of
from tests.reports import report_factory as factory

pytestmark = [*AS_OPERATOR, pytest.mark.usefixtures("study")]
LIST_URL = "/operator/fair/profiles/"
NEW_URL, PROFILE_URL = f"{LIST_URL}new/", f"{LIST_URL}operator-x/"
HTMX = {"HX-Request": "true"}
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
YEARS = {"rule-age": "birth_year", "was-rule-age": "birth_year", "band-age": ["0-39", "40+"]}


def look(client, data=FILE, **fields):
    given = data.encode() if isinstance(data, str) else data
    sent = {"sample": SimpleUploadedFile("sample", given), "size": str(len(given)), **fields}
    response = client.post(NEW_URL, sent, headers=HTMX)
    assert response.status_code == 200
    return response.content.decode()


def save(client, **changes):
    sent = {"sample": SimpleUploadedFile("sample", FILE.encode()), "size": str(len(FILE)), "action": "save"}
    return client.post(NEW_URL, {**sent, **CHOSEN, **changes}, headers=HTMX)


def chosen(html, name):
    selects = re.findall(rf'<select [^>]*name="{name}".*?</select>', html, re.S)
    found = [option for select in selects for option in re.findall(r'value="([^"]*)" selected', select)]
    return found or re.findall(rf'<input [^>]*name="{name}" value="([^"]*)"', html)


class TestNew:
    def test_it_begins_with_a_file(self, client):
        shown = page(client, NEW_URL)
        says(shown, "1. Choose a file", "manage.py create_profile fair FILE.toml")
        assert "Save the profile" not in shown
        assert "Choose a file first." in client.post(NEW_URL, CHOSEN, headers=HTMX).content.decode()

    def test_choices_are_shown_as_they_would_be_read(self, client):
        html = look(client, **CHOSEN)
        assert chosen(html, "meaning-age") == ["=young", "=old", ""] and "jeune = young" in html
        assert "jeune = young" not in look(client, **{**CHOSEN, "was-column-age": "StartTime"})
        assert len(chosen(look(client, **{**CHOSEN, "rule-age": "birth_year"}), "band-age")) == 2
        assert "suggested from the column name" in look(client)
        says(text_of(html), "Text file, columns separated by semicolons, encoding: UTF-8. 30 rows checked.")
        says(html, "→ old", "Mon 13 May 2024, 10:00, outside the study period")

    def test_what_is_proposed_follows_what_was_chosen(self, client):
        for changes, expected in (
            (None, {"role-subscriber": ["ServedMSISDN"], "role-timestamp": ["StartTime"], "timestamp_format": ["%d/%m/%Y %H:%M"],
                    "column-age": ["tranche_age"], "text-age": ["young", "vieux", "x"], "meaning-age": ["=young", "", ""]}),
            # another column begins again, and another time column is looked at again
            ({"was-column-age": "StartTime"}, {"meaning-age": ["=young", "", ""]}),
            ({"was-timestamp": "", "timestamp_format": "iso"}, {"timestamp_format": ["%d/%m/%Y %H:%M"]}),
            # another kind of rule shows its fields
            ({"rule-age": "birth_year"}, {"reference-age": ["2024-05-01"], "text-age": []}),
            ({"rule-age": "prefix"}, {"prefix-age": ["2"], "text-age": ["yo", "vi", "x"]}),
            # beginnings of another length are chosen again
            ({"rule-age": "prefix", "was-rule-age": "prefix", "prefix-age": "3", "text-age": ["yo", "vie"], "meaning-age": ["=young", "=old"], "more-age": ""},
             {"text-age": ["you", "vie", "x"], "meaning-age": ["", "=old", ""]}),
        ):  # fmt: skip
            html = look(client) if changes is None else look(client, **{**CHOSEN, **changes})
            assert {name: chosen(html, name) for name in expected} == expected, changes

    def test_an_order_of_times_that_could_be_either_is_asked_where_there_are_times(self, client):
        html = look(client, "msisdn,time\nx,01/02/2024 10:00\n")
        assert chosen(html, "timestamp_format") == [""]
        says(html, ">%d/%m/%Y %H:%M (day first)<", ">%m/%d/%Y %H:%M (month first)<")
        assert "does the day or the month come first?" in html
        html = look(client, "msisdn,age\nx,young\n")  # subscribers alone have no times
        assert chosen(html, "kind") == ["subscribers"] and "role-timestamp" not in html

    def test_it_warns_of_rows_that_would_be_rejected_each_once_by_its_first_reason(self, client):
        rejected = {"otherwise-age": "", "max_bad_share": "0.4"}
        warned = look(client, **CHOSEN | rejected)
        says(
            text_of(warned),
            "With these choices, 10 of the first 30 rows would be rejected (33.3%).",
            "categories: 10 rows · tranche_age",
        )
        lacks(warned, "is refused (limit")
        refused = text_of(look(client, **CHOSEN | rejected | {"max_bad_share": "0.3"}))
        says(refused, "A file with such a high share of rejected rows is refused (limit: 30.0%).")
        lacks(look(client, **CHOSEN), 'id="rejected"')
        rows = ";01/05/2024 10:00;x\n33612;soon;x\n33612;01/05/2024 10:00;young;more\n"
        says(
            text_of(look(client, FILE + rows, **CHOSEN | rejected)), "13 of the first 33 rows",
            "Subscriber ID is missing: 1 row · ServedMSISDN", "Unreadable timestamp: 1 row · StartTime",
            "differs from the number in the header: 1 row", "10 rows · tranche_age",
        )  # fmt: skip

    def test_it_says_how_many_people_are_unique_in_the_mapped_columns(self, client):
        # seven subscribers, each with the age group of its first row: three, two and two
        shown = text_of(look(client, **CHOSEN))
        says(shown, "0 of the 7 subscribers in the sample (0.0%) are unique in these columns: tranche_age.")
        one_more = "33699990000;14/05/2024 10:00;older\n"
        shown = text_of(look(client, FILE + one_more, **CHOSEN))
        says(
            shown, "1 of the 8 subscribers in the sample (12.5%) is unique in these columns: tranche_age.",
            "rows in the file, even without the identifier",
        )  # fmt: skip
        lacks(look(client, "msisdn,time\nx,01/02/2024 10:00\ny,01/02/2024 10:00\n"), 'id="uniqueness"')

    def test_what_is_odd_about_a_file_is_said_and_what_it_says_is_text_and_not_a_page(self, client):
        for data, words in {
            b"PK\x03\x04": "a zip archive",
            b"a,b\n": "The file has a header but no rows, so no values can be suggested",
            b"a,b\n1,2,3\n": "The number of columns differs from the number in the header: 1 row",
        }.items():
            assert words in text_of(look(client, data))
        lacks(look(client, '<b>id</b>,time,age\nx,2024-05-01T10:00,"<script>"\n'), "<script>", "<b>id")


class TestSave:
    def test_it_is_kept_as_chosen(self, client):
        assert save(client).headers["HX-Redirect"] == PROFILE_URL
        row = ExtractProfile.objects.get()
        typed = TypedProfile.from_json(row.definition)
        assert (row.created_by, typed.subscriber, typed.timestamp) == ("olga", "ServedMSISDN", "StartTime")
        assert (typed.delimiter, str(typed.max_bad_share)) == ("semicolon", "0.25")
        assert typed.rules["age"].values == {"vieux": "old", "jeune": "young", "?": ""}
        assert typed.rules["age"].otherwise == ""
        assert "already has a profile &#x27;operator-x&#x27;" in save(client).content.decode()
        assert ExtractProfile.objects.count() == 1

    def test_it_warns_of_a_file_without_the_column_of_the_class(self, client):
        study = parsed_study(class_text())

        def warned(text, kind="events", definition=study):
            return class_warnings(read_sample(text, size=len(text)), kind, definition)

        assert warned(b"msisdn,contract\na,PANEL\n") == []
        assert warned(b"msisdn,tariff\na,PANEL\n") == [
            "The file has no column “contract”, which must give the class of each subscriber. Files without "
            "it are refused."
        ]
        create_study(study, by="adam")
        data = SimpleUploadedFile("sample", b"msisdn,time,tariff\na,2024-03-01T10:00:00,PANEL\n")
        address = NEW_URL.replace("fair", "classes")
        html = client.post(address, {"sample": data, "size": "60"}, headers=HTMX).content.decode()
        says(text_of(html), "The file has no column “contract”")
        assert warned(b"msisdn\na\n", "opt_out") == warned(b"msisdn,tariff\n") == []
        assert warned(b"msisdn\na\n", definition=factory.definition(factory.GENDER)) == []

    def test_it_warns_where_files_lack_a_part_of_a_joint_indicator(self, client):
        age, stay, region = factory.AGE, factory.STAY, factory.indicator("region", "here", "there")
        joints = factory.BOTH, factory.joint("daily", age, stay, kind="daily")
        found = factory.definition(factory.GENDER, age, stay, region, *joints)
        assert missing_parts("events", {"gender", "region"}, found) == [
            "Both: the files have no column for Age, so they provide no answers for this combination.",
            "Daily: the files have no column for Age. In answers for this combination, each missing part is "
            "recorded as “no value”.",
        ]
        assert len(missing_parts("subscribers", {"region"}, found)) == 1
        assert missing_parts("events", {"age", "gender"}, found) == missing_parts("opt_out", (), found) == []

    def test_ages_by_year_of_birth(self, client):
        response = save(client, **YEARS, **{"reference-age": "2024-05-01", "more-age": ""})
        assert "HX-Redirect" in response.headers
        birth = TypedProfile.from_json(ExtractProfile.objects.get().definition).rules["age"].birth
        assert birth.bands == {"young": (0, 39), "old": (40, None)}

    def test_errors_stand_at_their_field(self, client):
        for changes, near, words in (
            ({"name": ""}, "Name of the profile", "is missing"),
            ({"name": "default"}, "Name of the profile", "is the name of a built-in profile"),
            ({"role-subscriber": ""}, "Subscriber", "is missing"),
            ({"timestamp_format": "pattern", "timestamp_pattern": "%d"}, "Custom time format", "must be"),
            ({"column-age": "StartTime", "was-column-age": "StartTime"}, "Column", "must be its own column"),
            ({"more-age": "what"}, "age", "must have the form “value = category” on every line"),
            ({**YEARS, "band-age": ["0-39", "old"]}, "age", "must be an age range such as 18-24"),
            ({**YEARS, "rule-age": "birth_date", "was-rule-age": "birth_date", "reference-age": "2024-05-01"}, "Date format", "must"),
            ({"rule-age": "prefix", "was-rule-age": "prefix", "prefix-age": "two", "more-age": ""}, "Number of leading characters to match", "must be a whole number"),
        ):  # fmt: skip
            html = save(client, **changes).content.decode()
            assert "Nothing was saved." in html
            blocks = map(unescape, re.split(r'<div class="field|<fieldset|<h3>', html))
            assert any(near in block for block in blocks if words in text_of(block)), text_of(html)
        assert not ExtractProfile.objects.exists()


class TestCopy:
    COPY_URL = f"{NEW_URL}?copy=operator-x"

    def form_of(self, html):
        """Fields of the form, as a browser sends them."""
        sent = {}
        for name, value in re.findall(r'<input [^>]*name="([^"]*)" value="([^"]*)"', html):
            sent.setdefault(name, []).append(unescape(value))
        for name in re.findall(r'<select [^>]*name="([^"]*)"', html):
            sent[name] = [unescape(value) for value in chosen(html, name)]
        for name, text in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n(.*?)</textarea>', html, re.S):
            sent[name] = [unescape(text)]
        return {name: value for name, value in sent.items() if name != "csrfmiddlewaretoken"}

    def test_a_copy_reads_files_as_its_original_does_and_needs_no_file(self, client):
        for changes in (
            {}, {"rule-age": "prefix", "was-rule-age": "prefix", "prefix-age": "2", "text-age": ["vi"], "meaning-age": ["=old"], "more-age": "", "ignore_case-age": ""},
            YEARS | {"reference-age": "2024-05-01", "more-age": "", "otherwise-age": ""},
            YEARS | {"rule-age": "birth_date", "was-rule-age": "birth_date", "pattern-age": "%d.%m.%Y", "reference-age": "2024-05-01", "more-age": ""},
            {"timestamp_format": "pattern", "timestamp_pattern": "%Y/%d/%m %H:%M"},
        ):  # fmt: skip
            save(client, **changes)
            html = html_of(client, self.COPY_URL)
            says(
                text_of(html),
                "Copy of the profile operator-x",
                "The settings below come from the profile operator-x.",
            )
            assert chosen(html, "name") == ["operator-x-2"]
            response = client.post(NEW_URL, self.form_of(html) | {"action": "save"}, headers=HTMX)
            assert response.headers["HX-Redirect"] == f"{LIST_URL}operator-x-2/", response.content.decode()
            both = [row.definition | {"name": ""} for row in ExtractProfile.objects.all()]
            assert both[0] == both[1] and len(both) == 2
            assert chosen(html_of(client, f"{NEW_URL}?copy=operator-x-2"), "name") == ["operator-x-3"]
            ExtractProfile.objects.all().delete()

    def test_its_choices_stay_when_a_file_is_chosen_and_what_the_file_lacks_is_marked(self, client):
        save(client)
        form = self.form_of(html_of(client, self.COPY_URL))
        html = look(client, FILE.replace("StartTime", "Begin"), **form)
        assert chosen(html, "role-timestamp") == ["StartTime"] and "StartTime (not in this file)" in html
        assert chosen(html, "meaning-age") == ["=young", "=old", ""] and "jeune = young" in html

    def test_it_is_offered_and_only_of_profiles_of_the_study(self, client):
        save(client)
        for address in (LIST_URL, PROFILE_URL):
            assert f'href="{self.COPY_URL}"' in html_of(client, address)
        assert client.get(f"{NEW_URL}?copy=opt-out").status_code == 404
        assert client.post(NEW_URL, {"copy": "operator-y"}, headers=HTMX).status_code == 404

    def test_a_free_name_is_a_name(self):
        assert free_name("x-2", taken={"x-2", "x-3"}) == "x-4"
        assert free_name("x" * 64, taken=()) == "x" * 62 + "-2"


class TestProfile:
    def test_built_in_ones_are_explained_and_made_ones_say_how_files_are_read(self, client):
        shown = page(client, LIST_URL)
        assert "Events, as described in the [extract] section of the study file" in shown
        says(shown, "List of people who must not be counted", "No profiles yet")
        save(client)
        html = html_of(client, PROFILE_URL)
        says(text_of(html), "vieux → old", "any other value → no answer", "The profile was saved.")
        says(html_of(client, LIST_URL), f'href="{PROFILE_URL}"', "by olga")
        assert '"/operator/fair/?profile=operator-x&amp;validate_only=1#upload-title"' in html

    def test_an_unused_one_can_be_removed_and_one_that_a_batch_was_read_with_stays(self, client, study):
        save(client)
        batch = Batch.objects.create(study=study, profile="operator-x")
        shown = page(client, PROFILE_URL)
        says(shown, "1 batch has been read with this profile, so you cannot change the profile")
        assert "Remove the profile" not in shown
        assert "operator-x" in client.post(f"{PROFILE_URL}delete/", follow=True).content.decode()
        batch.delete()
        response = client.post(f"{PROFILE_URL}delete/", follow=True)
        assert "The profile operator-x was removed." in response.content.decode()
        assert not ExtractProfile.objects.exists()
        assert [client.get(PROFILE_URL).status_code, client.post(f"{PROFILE_URL}delete/").status_code] == [
            404
        ] * 2
