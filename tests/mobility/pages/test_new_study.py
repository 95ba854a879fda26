"""The page of a new study: steps and text follow each other, files give columns, and nothing is stored."""

import io
import re
from decimal import Decimal
from html import unescape
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import connections

from ldp.privacy.plans import Mechanism
from mobility.demo.population import FOLDER
from mobility.models import PlanDraft
from mobility.plans.drafts import draft_new_study
from mobility.plans.new_study.text import tables_of_text
from mobility.plans.pages.draft_fields import LABELS, with_labels
from reports.studies.studyfile import StudyDefinition
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.mobility.pages import pages
from tests.mobility.pages.pages import field_of, file, html_of, lacks, mechanisms_of, said, says, text_of
from tests.mobility.pages.small_study import STUDY, definition_of

pytestmark = pages.AS_ADMINISTRATOR
URL = "/administrator/create/"
ORDER = get_args(Mechanism).index
HTMX = {"HX-Request": "true"}
HEADER = "msisdn,time,cell_id,age,surname\n"
SAMPLE = HEADER + "".join(
    f"3361234{n:04d},2024-05-01T1{n % 10}:00:00,c{n % 3},{'young' if n % 2 else 'old'},Durand{n}\n"
    for n in range(60)
)


def fields_of(html):
    """Values that a browser would send: of text fields, radio buttons, selects and lists."""
    found = dict(
        re.findall(
            r'<input type="(?:text|hidden|date|time|number)"[^>]* name="([^"]+)" value="([^"]*)"', html
        )
    )
    found |= dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', html))
    found |= dict(re.findall(r'<input type="radio"[^>]* name="([^"]+)" value="([^"]*)" checked', html))
    for name, body in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', html, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', body)
        found[name] = chosen[1] if chosen else ""
    found |= dict(re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>', html, re.DOTALL))
    sent = {name: unescape(value) for name, value in found.items()}
    return sent | {"row": re.findall(r'name="row" value="([^"]+)"', html)}


class Walk:
    """A browser without scripts: each answer is what the next change starts from."""

    def __init__(self, client, query=""):
        self.client = client
        self.html = html_of(client, URL + query)

    def change(self, do="sync", files=(), **fields):
        sent = fields_of(self.html) | {name.replace("__", "."): value for name, value in fields.items()}
        response = self.client.post(URL, sent | dict(files) | {"do": do})
        self.html = response.content.decode()
        return response

    @property
    def text(self):
        return fields_of(self.html)["text"]


def test_a_study_is_made_from_a_sample_without_writing_its_file(client):
    walk, sample = Walk(client), {"sample": file(SAMPLE, "sample")}
    walk.change(study__name="Fair", study__first_day="2024-05-01", study__days="3")
    assert walk.html.count("Certified epsilon:") == 0  # without indicators there is no plan
    walk.change("sample", sample)
    assert 'subscriber = "msisdn"\ntimestamp = "time"\ncell = "cell_id"' in walk.text
    says(walk.html, "Add age as an indicator", "Hidden: these values could identify people")
    lacks(walk.html, "Durand7", "Add surname", "33612340007")
    walk.change("column-3", {"sample": file(SAMPLE, "sample")})
    says(walk.html, "Values in the sample: tick those that are categories", 'value="young"')
    says(walk.html, "Certified epsilon: 1 per attribute, 1 per profile")
    response = walk.change("create", **{"indicator-0__name": "Age band"})
    (draft,) = PlanDraft.objects.all()
    assert response.url == f"/administrator/drafts/{draft.pk}/"
    (age,) = StudyDefinition.from_json(draft.definition).indicators
    assert (draft.slug, age.name, age.column, age.categories) == ("fair", "Age band", "age", ("old", "young"))
    for database in ("default", "vault"):  # of the rows nothing but what was picked
        kept = (
            "\n".join(connections[database].connection.iterdump())
            if connections[database].vendor == "sqlite"
            else ""
        )
        lacks(kept, "Durand", "3361234")


FRENCH = "N° abonné;Date heure;{};Sexe\n" + "".join(
    f"3361234{n:04d};2024-05-01T1{n % 10}:00:00;c{n % 3};F\n" for n in range(20)
)


def test_columns_with_french_names_are_proposed(client):
    walk = Walk(client)
    walk.change("sample", {"sample": file(FRENCH.format("Identifiant cellule"), "sample")})
    assert 'subscriber = "N° abonné"\ntimestamp = "Date heure"\ncell = "Identifiant cellule"' in walk.text
    walk = Walk(client)
    walk.change(
        "sample",
        {"sample": file(FRENCH.format("Lieu").replace("N° abonné", "Numero de telephone"), "sample")},
    )
    assert 'subscriber = "Numero de telephone"' in walk.text and "cell =" not in walk.text


@pytest.mark.parametrize("added", ["static", "origin", "daily", "joint", "number"])
def test_each_kind_of_indicator_is_added_beside_a_sample_whose_lines_end_with_a_separator(client, added):
    walk, sample = Walk(client), SAMPLE.replace("\n", ",\n")
    walk.change("sample", {"sample": file(sample, "sample")})
    assert 'subscriber = "msisdn"\ntimestamp = "time"\ncell = "cell_id"' in walk.text
    walk.change("column-3", {"sample": file(sample, "sample")})
    assert walk.change(f"add-{added}", {"sample": file(sample, "sample")}).status_code == 200
    says(walk.html, "New indicator")


@pytest.mark.parametrize("last", ["map", "sample"])
def test_the_cell_column_of_a_sample_is_found_by_the_cells_of_the_study(client, last):
    """The order in which the two files are chosen does not matter."""
    files = {"cells": file("cell_id,lon,lat\nc0,6,47\nc1,6,47\nc2,6,47\n", "cells.csv")}
    sample = {"sample": file(FRENCH.format("Lieu"), "sample")}
    walk = Walk(client)
    walk.change("sample", sample)
    assert "cell =" not in walk.text
    walk.change(last, files | {"sample": file(FRENCH.format("Lieu"), "sample")}, area__cells="cells.csv")
    assert 'cell = "Lieu"' in walk.text


def test_a_daily_indicator_is_named_after_what_is_derived(client):
    walk = Walk(client)
    walk.change("add-daily")
    walk.change(**{"indicator-0__derive": "visit_duration"})
    assert 'name = "Duration of the visit"' in walk.text and 'slug = "visit_duration"' in walk.text
    walk.change(**{"indicator-0__name": "", "indicator-0__derive": "main_zone"})
    assert "Zone in which" not in walk.text and 'slug = "visit_duration"' in walk.text


def test_a_step_that_may_be_left_out_is_not_complete_before_something_is_chosen(client):
    walk = Walk(client)
    steps = text_of(walk.html)
    assert steps.count("nothing chosen") == 2 and "Cells and zones (optional) nothing chosen" in steps
    walk.change("add-class", area__cells="cells.csv")
    says(walk.html, "files not checked yet")
    lacks(walk.html, "nothing chosen")


def test_a_study_without_indicators_is_told_so_by_the_name_of_the_step(client):
    walk = Walk(client)
    assert walk.change("create").status_code == 422
    says(walk.html, "“Indicators”: is missing (study.toml: indicator)")
    lacks(walk.html, "study.toml: indicator: is missing")


def test_times_of_a_sample_get_their_format_once_the_days_are_known(client):
    """Until then day and month could be either, and the page says so."""
    rows = "".join(f"s{n},0{n % 5 + 1}/06/2024 10:00:00,c1,young\n" for n in range(20))
    sample = "msisdn,time,cell_id,age\n" + rows
    walk = Walk(client)
    walk.change("sample", {"sample": file(sample, "sample")})
    assert "timestamp_format" not in walk.text
    both = "fit more than one format: %d/%m/%Y %H:%M:%S, %m/%d/%Y %H:%M:%S. Enter the right one."
    says(walk.html, both)
    walk.change("sync", {"sample": file(sample, "sample")}, study__first_day="2024-06-01", study__days="7")
    assert 'timestamp_format = "%d/%m/%Y %H:%M:%S"' in walk.text
    lacks(walk.html, "more than one format")
    walk.change("sync", {"sample": file(sample.replace("/", "~"), "sample")}, extract__timestamp_format="")
    says(walk.html, "not in ISO 8601, and no format was recognised")
    assert walk.change("sync", {"sample": file(SAMPLE, "sample")}).status_code == 200
    assert "timestamp_format" not in walk.text and "ISO 8601, and no" not in walk.html


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_values_of_all_sent_rows_are_offered_as_categories(client, form):
    regions = ["<18", *(f"r{n:02d}" for n in range(35)), ">65"]
    rows = [(f"s{n % 500}", f"2024-05-01T10:{n % 60:02d}:00", regions[min(n // 40, 36)]) for n in range(2000)]
    text = "msisdn,time,region\n" + "".join(",".join(row) + "\n" for row in rows)
    data = text.encode() + b"s1,2024-05-01T10:00:00,cut"
    if form == "parquet":
        sink = io.BytesIO()
        pq.write_table(
            pa.table(dict(zip(("msisdn", "time", "region"), zip(*rows, strict=True), strict=True))), sink
        )
        data = sink.getvalue()
    sent = {"size": str(len(data) + (form == "csv"))}
    walk = Walk(client)
    walk.change("sample", {"sample": file(data, "sample")}, **sent)
    walk.change("column-2", {"sample": file(data, "sample")}, **sent)
    assert fields_of(walk.html)["indicator-0.categories"].split("\n") == regions
    says(walk.html, "2,000 rows of the sample read; the whole file may hold more values.")


def test_errors_of_the_parser_stand_at_their_fields_and_missing_ones_only_in_the_end(client):
    walk = Walk(client)
    walk.change(study__days="99")
    says(walk.html, "must be a whole number from 1 to 62, got 99")
    lacks(walk.html, ">is missing</li>", "Nothing was created")
    assert re.search(r'<div class="field field--bad">\s*<label for="id-study.days">', walk.html)
    assert walk.change("create").status_code == 422
    assert re.search(r'<div class="field field--bad">\s*<label for="id-extract.subscriber">', walk.html)
    says(walk.html, "“Subscriber column”: is missing (study.toml: extract.subscriber)")


def test_classes_are_made_in_the_form_and_errors_stand_at_their_fields(client):
    walk = Walk(client)
    sample = "msisdn,time,age,contract\n" + "".join(
        f"s{n},2024-05-01T1{n % 10}:00:00,{'young' if n % 2 else 'old'},{'std' if n % 3 else 'min'}\n"
        for n in range(60)
    )
    walk.change(study__name="Fair", study__first_day="2024-05-01", study__days="3")
    walk.change("sample", {"sample": file(sample, "sample")})
    walk.change("column-2", {"sample": file(sample, "sample")})
    lacks(walk.html, "id-plan.class_column")
    walk.change("add-class", {"sample": file(sample, "sample")})
    says(walk.html, '<option value="contract"', 'data-new="class-0"')
    lacks(walk.html, "is missing")
    first = {"class-0__name": "Minor", "class-0__value": "min", "class-0__epsilon": "0,5"}
    walk.change("add-class", plan__class_column="contract", **first)
    walk.change(**{"class-1__name": "Standard", "class-1__value": "min", "class-1__epsilon": "2"})
    assert "must be unique among the classes, got &quot;min&quot;" in field_of(walk.html, "class-1.value")
    walk.change(**{"class-1__value": "std"})
    epsilon = field_of(walk.html, "plan.epsilon")
    assert "must be the largest epsilon of the classes, 2, got 1" in epsilon
    lacks(walk.html, "Certified epsilon")
    walk.change(plan__epsilon="2")
    assert "Certified epsilon: 0.5 per attribute, 0.5 per profile" in field_of(walk.html, "class-0.epsilon")
    assert "Certified epsilon: 2 per attribute, 2 per profile" in field_of(walk.html, "class-1.epsilon")
    walk.change(plan__mechanism="spl-grr")
    says(
        walk.html, "must be one of smp-grr, smp-oue, smp-adp in a study with classes, got &quot;spl-grr&quot;"
    )
    walk.change(plan__mechanism="smp-adp")
    assert walk.change("create").status_code == 302
    made = StudyDefinition.from_json(PlanDraft.objects.get().definition)
    assert [(each.slug, each.value, each.epsilon) for each in made.classes] == [
        ("minor", "min", Decimal("0.5")),
        ("standard", "std", Decimal(2)),
    ]
    assert made.plan.class_column == "contract"


def test_a_plan_may_disclose_values_by_the_form(client):
    walk = Walk(client)
    walk.change(plan__discloses_values="true")
    assert "discloses_values = true" in walk.text
    assert fields_of(walk.html)["plan.discloses_values"] == "true"
    walk.change(plan__discloses_values="")
    assert "discloses_values" not in walk.text


def test_what_classes_lack_is_said_in_the_end(client):
    walk = Walk(client)
    walk.html = client.post(
        URL, {"text": STUDY.replace("epsilon = 0.5\n", ""), "do": "sync"}
    ).content.decode()
    walk.change("add-class")
    walk.change(**{"class-0__name": "Minor", "class-0__epsilon": "1"})
    lacks(walk.html, "is missing")
    assert walk.change("create").status_code == 422
    says(
        walk.html,
        "is missing: with classes, a column must say the class of each row",
        "is missing: with classes, a study has at least 2",
    )
    walk.change("remove-class-0")
    lacks(walk.html, "with classes")


def test_errors_at_fields_speak_of_the_labels_of_the_form(client):
    walk = Walk(client)
    walk.change(
        extract__subscriber="id",
        extract__timestamp="id",
        study__visitor__from="22:00",
        study__visitor__to="06:00",
    )
    at_fields = " ".join(re.findall(r'<ul class="errorlist" id="[^"]*-errors">(.*?)</ul>', walk.html))
    says(
        at_fields, "must be its own column, but “Subscriber column” uses it", "later than “Count events from”"
    )
    lacks(at_fields, "extract.", "study.visitor")


def test_labels_replace_keys_only_where_one_field_is_meant():
    kept = 'must be one of "epoch_ms", "small_cell", smp-grr', "name and slug, manage.py, extract.attributes"
    for rule, shown in (
        ("indicator[a-b].column uses it", "“Column in the extract” uses it"),
        ("small_cell is 5, got x", "“Minimum number of visitors for a date range to be shown” is 5, got x"),
        *zip(kept, kept, strict=True),
    ):
        assert with_labels(rule, LABELS) == shown


def test_a_text_goes_into_the_form_and_what_has_no_field_is_said(client):
    walk = Walk(client)
    more = '\n[subscribers]\nsubscriber = "id"\n'
    walk.change(text=STUDY + more)
    assert fields_of(walk.html)["study.name"] == "Fair & market"
    says(
        walk.html, "The form has no fields for these parts of the text", "subscribers, extract.max_bad_share"
    )
    broken = client.post(URL, {"text": "days = ", "base": "", "do": "sync"}, headers=HTMX)
    assert broken.headers["HX-Retarget"] == "#outcome"
    says(broken.content.decode(), "study.toml: line 1, column 8: must be valid TOML")


def test_files_of_the_area_are_shown_on_a_map_and_their_errors_at_their_field(client):
    walk = Walk(client)
    files = {name: file((FOLDER / f"{name}.{end}").read_bytes(), f"{name}.{end}") for name, end in
             (("cells", "csv"), ("zones", "geojson"))}  # fmt: skip
    walk.change("map", files, area__cells="cells.csv", area__zones="zones.geojson")
    says(walk.html, "62 cells, 10 zones.", 'id="area-data"')
    bad = {"cells": file("cell_id,lon,lat\nx,999,1\n", "cells.csv")}
    walk.change("map", bad, area__zones="")
    says(walk.html, "There is nothing to show yet", "cells.csv, line 2", "from -180 to 180")
    assert re.search(r'<div class="field field--bad">\s*<label for="id-area.cells">', walk.html)


def test_a_copy_has_all_of_the_study_but_its_short_name(client, study):
    walk = Walk(client, "?copy=fair")
    lacks(walk.text, 'slug = "fair"')
    assert fields_of(walk.html)["like"] == "fair"
    assert walk.change("create", study__slug="fair-2", study__days="2").status_code == 302
    (draft,) = PlanDraft.objects.all()
    assert (draft.slug, draft.base_slug, draft.definition["days"]) == ("fair-2", "fair", 2)
    assert client.get(f"{URL}?copy=none").status_code == 404


def test_the_recommended_mechanism_follows_the_indicators_and_the_text_keeps_what_it_says(client):
    walk = Walk(client)
    first, others = mechanisms_of(walk.html)
    assert first == ["smp-adp"] and others == sorted(set(get_args(Mechanism)) - {"smp-adp"}, key=ORDER)
    assert '<details id="id-plan.mechanism-others"><summary>' in walk.html  # folded
    walk.change(do="add-daily")
    walk.change(**{"indicator-0.name": "Stay", "indicator-0.derive": "visit_duration"})
    first, others = mechanisms_of(walk.html)
    assert first == ["smp-question"] and "smp-adp" in others
    says(
        walk.html, "Recommended: <strong>smp-question</strong>. By the simulator", "narrower on average than"
    )
    assert '<details id="id-plan.mechanism-others" open>' in walk.html  # it holds the chosen one
    assert 'mechanism = "smp-adp"' in walk.text
    walk.change(plan__mechanism="smp-question")
    assert 'mechanism = "smp-question"' in walk.text
    assert '<details id="id-plan.mechanism-others"><summary>' in walk.html
    walk.change(text=walk.text.replace('"smp-question"', '"smp-none"'))
    assert fields_of(walk.html)["plan.mechanism"] == "smp-none" and "must be one of" in walk.html
    walk.change(plan__epsilon="2")
    assert 'mechanism = "smp-none"' in walk.text


def new_study_of(client, query):
    """The simulator's page, and the new study that its link begins."""
    html = html_of(client, f"/administrator/simulator/?{query}")
    (link,) = re.findall(r'href="/administrator/create/(\?[^"]+)"', html)
    return html, Walk(client, unescape(link))


def test_the_simulator_gives_its_values_to_a_new_study(client):
    common = "epsilon=2&days=5&daily=2&cap=5&visitors=1000&stay=1"
    html, walk = new_study_of(client, f"mechanism=smp-stream&window_days=3&{common}")
    says(html, "For the answers of any 3 consecutive days, the limit is epsilon 2")
    assert {'mechanism = "smp-stream"', "window_days = 3"} <= set(walk.text.splitlines())
    html, walk = new_study_of(client, f"mechanism=smp-loloha&epsilon_first=0.5&{common}")
    says(html, "5,000 expected subscribers, computed from")
    assert {
        'mechanism = "smp-loloha"', "epsilon = 2", "epsilon_first = 0.5", "days = 5",
        "expected_subscribers = 5000",
    } <= set(walk.text.splitlines())  # fmt: skip
    _, renewed = new_study_of(client, f"mechanism=smp-allomfree&epsilon_first=0.5&{common}")
    assert {'mechanism = "smp-allomfree"', "epsilon_first = 0.5"} <= set(renewed.text.splitlines())
    html, walk = new_study_of(client, f"mechanism=smp-loloha&epsilon_first=0.5&{common}")
    walk.change(text=walk.text.replace("epsilon = 2", "epsilon = 3"))  # into a text that was begun before
    assert "epsilon = 2" in walk.text.splitlines()
    html, walk = new_study_of(client, "mechanism=smp-grr&epsilon=2&days=5")
    assert "expected_subscribers" not in walk.text  # no one entered a number of people
    says(html, "The number of visitors is not carried over, because you did not change it.")


def test_fewer_days_need_no_other_maximum_unless_it_was_typed_for_daily_indicators(client):
    for query, is_refused in (
        ("days=3&stay=2", False), ("days=3&stay=2&daily=0", False), ("days=5&stay=1&daily=0&cap=6", False),
        ("days=5&stay=1&daily=2&cap=7", False),  # the default
        ("days=5&stay=1&daily=2&cap=6", True),
    ):  # fmt: skip
        html = html_of(client, f"/administrator/simulator/?{query}&visitors=1000")
        assert ("Nothing was simulated" in html, "Expected accuracy" in html) == (is_refused, not is_refused)


def test_the_simulator_gives_answers_per_person_and_slots_to_a_new_study(client):
    """Also to daily indicators that the text of this tab has already, and to those that come later."""
    query = "/administrator/simulator/?mechanism=smp-grr&daily=1&indicators=1&cap=2"
    query += "&slots_epsilon=0.5&slots_per_day=8&slots_zones=4"
    (link,) = re.findall(r'href="/administrator/create/(\?[^"]+)"', html_of(client, query))
    walk = Walk(client)
    walk.change("add-daily")
    walk.change(**{"indicator-0__derive": "visit_duration"})
    begun = walk.text
    walk = Walk(client, unescape(link))
    assert (
        "epsilon_day = 0.5\nslots_per_day = 8" in walk.text
        and fields_of(walk.html)["slots.epsilon_day"] == "0.5"
    )
    says(walk.html, "From the simulator: at most 2 answers per person")
    walk.change(text=begun)  # as the browser does with what was begun
    assert (walk.text.count("max_values = 2"), walk.text.count("epsilon_day = 0.5")) == (1, 1)
    walk.change(**{"indicator-0__max_values": ""})
    walk.change("add-daily")
    assert walk.text.count("max_values = 2") == 1  # later changes win
    assert (
        "cap"
        not in html_of(client, query.replace("cap=2", "cap=7")).partition("/administrator/create/")[2][:400]
    )


def test_a_step_of_time_slots_that_is_emptied_leaves_the_text(client):
    walk = Walk(client)
    walk.change(slots__epsilon_day="0,5")
    assert "[slots]\nepsilon_day = 0.5" in walk.text
    walk.change(slots__epsilon_day="")
    assert "slots" not in walk.text


def test_the_simulator_is_told_that_a_visitor_category_is_not_daily(client):
    walk = Walk(client)
    walk.change("add-origin")
    says(walk.html, "indicators=1&amp;daily=0")


def test_the_simulator_is_told_each_name_and_number_of_categories(client):
    walk = Walk(client)
    for row, (name, n) in enumerate([("Age band", 3), ("Region", 18)]):
        walk.change("add-static")
        fields = {"name": name, "slug": f"of_{row}", "categories": "\n".join(f"c{each}" for each in range(n))}
        walk.change(**{f"indicator-{row}__{key}": value for key, value in fields.items()})
    (link,) = re.findall(r'href="(/administrator/simulator/\?[^"]+)"', walk.html)
    found = fields_of(html := html_of(client, unescape(link)))
    assert (found["k-i1"], found["k-i2"], found["days"]) == ("3", "18", "7")
    says(html, "Age band", "Region", "Use in a new study")
    html = html_of(client, unescape(link) + "&days=5&k-i2=9")
    assert fields_of(html)["k-i2"] == "9"
    says(html, "Use in a new study")


def test_an_address_with_other_indicators_starts_the_simulator_with_numbers(client):
    for asked in ("x", "[1]", '[["a","static",1]]', '[["a","b",3]]', "3", "[[[],[],[]]]", "{}"):
        html = client.get("/administrator/simulator/", {"asked": asked}).content.decode()
        assert fields_of(html)["categories"] == "8", asked


def test_the_simulator_gives_every_changed_value_to_the_draft(client):
    draft = draft_new_study(definition_of(), by="adam")
    start = f"/administrator/simulator/?draft={draft.pk}"
    assert f'href="/administrator/drafts/{draft.pk}/edit/?used=1"' in html_of(client, start)

    def saved_of(query):
        (link,) = re.findall(
            r'href="(/administrator/drafts/\d+/edit/\?[^"]+)"', html_of(client, start + query)
        )
        html = html_of(client, unescape(link))
        says(html, "The values from the simulator are filled in below")
        response = client.post(f"/administrator/drafts/{draft.pk}/edit/", fields_of(html), follow=True)
        says(said(response), "Saved.")
        draft.refresh_from_db()
        return StudyDefinition.from_json(draft.definition)

    saved = saved_of("&unit=attribute&epsilon=0.75&cap=2&presence_epsilon=1")
    assert (saved.plan.unit, str(saved.plan.epsilon), saved.plan.presence_days) == ("attribute", "0.75", 3)
    assert [each.max_values for each in saved.indicators] == [None, 2]
    query = "&mechanism=smp-oue&presence_epsilon=&combine_1=age&combine_2=visit_duration&k-age=3"
    unlike = "Changes to the numbers of categories, zones and zone levels are not carried over to the draft"
    says(html_of(client, start + query), unlike)
    saved = saved_of(query)
    assert (saved.plan.mechanism, saved.plan.presence_epsilon) == ("smp-oue", None)
    assert saved.indicators[2].parts == ("age", "visit_duration")


def test_the_simulator_shows_the_errors_of_classes_and_gives_them_to_a_new_study(client):
    rows = "".join(
        f"&share-class-{n}={share}&class-class-{n}={epsilon}"
        for n, (share, epsilon) in enumerate([(10, 3), (60, 1), (30, "0.5")], start=1)
    )
    start = f"mechanism=smp-oue&indicators=1&categories=96&days=1&stay=1&visitors=1000000{rows}"
    html, walk = new_study_of(client, start)
    says(html, "0.264 points", "0.130 points", "0.396 points", "Everyone at epsilon 0.5")
    says(html, "With classes, only their epsilons count.")
    says(html, "a class with the largest epsilon (Class 1)", "Class 2: 60.0% of visitors, epsilon 1")
    lacks(html, "Find the epsilon for a target error")
    walk.change()
    sent = fields_of(walk.html)
    assert [sent[f"class-{n}.epsilon"] for n in range(3)] == ["3", "1", "0.5"]
    assert [each["slug"] for each in tables_of_text(walk.text, filename="")["class"]] == [
        f"class-{n}" for n in (1, 2, 3)
    ]
    assert sent["plan.epsilon"] == "3"
    for changed, error in (
        (("share-class-3=30", "share-class-3="), "Enter a percentage, or leave both fields"),
        (("class-class-3=0.5", "class-class-3="), "Enter an epsilon, or leave both fields"),
        (("share-class-3=30", "share-class-3=20"), "must add up to 100. Their sum is 90.0."),
    ):
        says(html_of(client, f"/administrator/simulator/?{start.replace(*changed)}"), error)
    one = "visitors=1000&share-class-1=100&class-class-1=1"
    says(html_of(client, f"/administrator/simulator/?{one}"), "Enter at least two classes, or none.")
    says(html_of(client, f"/administrator/simulator/?{start}&visitors=3"), "One of the classes is too small")
    says(html_of(client, f"/administrator/simulator/?{start}&mechanism=spl-grr"), "This plan is not possible")


def test_classes_of_the_form_go_through_the_simulator_and_come_back(client):
    walk = Walk(client)
    walk.html = client.post(
        URL, {"text": class_text({"minor": 0.5, "panel": 3}), "do": "sync"}
    ).content.decode()
    (link,) = re.findall(r'href="/administrator/simulator/(\?[^"]+)"', walk.html)
    page = f"{unescape(link)[1:]}&days=3&class-minor=0.25&visitors=1000"
    html, back = new_study_of(client, page)
    says(html, "minor: 50.0% of visitors, epsilon 0.25")
    back.change(text=walk.text)  # the browser kept it
    assert "class-2.slug" not in fields_of(back.html)
    classes = tables_of_text(back.text, filename="")["class"]
    assert [(each["slug"], each["epsilon"], each["value"]) for each in classes] == [
        ("minor", Decimal("0.25"), "MINOR"),
        ("panel", 3, "PANEL"),
    ]


def test_the_simulator_gives_the_epsilons_of_classes_to_the_draft(client):
    draft = draft_new_study(parsed_study(class_text({"minor": 0.5, "panel": 3})), by="adam")
    start = f"/administrator/simulator/?draft={draft.pk}"
    html = html_of(client, start)
    says(html, "Class minor: 50.0% of visitors, epsilon 0.5", 'edit/?used=1"')
    html = html_of(client, f"{start}&class-panel=4&share-panel=20&share-minor=80")
    (link,) = re.findall(r'href="(/administrator/drafts/\d+/edit/\?[^"]+)"', html)
    sent = fields_of(html_of(client, unescape(link)))
    assert (sent["class-0.epsilon"], sent["class-1.epsilon"], sent["plan.epsilon"]) == ("0.5", "4", "4")
    assert (sent["class-1.slug"], sent["class-1.value"]) == ("panel", "PANEL")


def test_a_study_of_events_is_refused_at_the_first_change_with_what_to_do(client):
    words = "which creates studies of visitors only. Save the text as a file"
    walk = Walk(client)
    lacks(walk.html, words)
    says(walk.html, "A study that counts events instead of people cannot be created here.")
    walk.change(text=walk.text.replace("[study]", '[study]\nkind = "events"', 1))
    says(walk.html, words, "manage.py create_study FILE.toml", "study.kind")
    walk.change(text=walk.text.replace('kind = "events"\n', "", 1))
    lacks(walk.html, words)
