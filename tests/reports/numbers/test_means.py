"""Mean of a number by category, from tallies to pages, files, the API and the statement."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from reports.crosstab.joints import joint_indicators
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.queries import Window
from reports.numbers.by_category import means_report, number_by
from reports.numbers.queries import NoNumberError
from reports.privacy.statement.document import privacy_statement
from reports.sharing import actions as access
from scripts.check_statement import check
from tests.reports import report_factory as factory
from tests.reports.map_factory import ZONES, area
from tests.reports.page_texts import csv_rows, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/length_by/"
ZONE = factory.indicator("zone", *ZONES, kind="daily", column=None, derive="main_zone")
SIDES = ("below", "reached", "no value")
BY = factory.indicator(
    "length_by", *(" / ".join(each) for each in product((*ZONES, "no value"), SIDES)),
    kind="daily", column=None, parts=("zone", "length"),
)  # fmt: skip


@pytest.fixture
def study():
    return factory.published(factory.LENGTH, ZONE, BY, area=area(), epsilon="4", n=12_000)


def test_the_mean_of_each_zone_is_that_of_its_people(study) -> None:
    """People have codes of both; of n of a zone below and m above, the mean is the share m of the range."""
    found = means_report(study.indicators.get(slug="length_by"), Window(2, 2))
    people = factory.crowd(study, n=12_000)
    there = people.present(2, 2)
    counts = np.bincount(people.daily["length_by"][there, 1], minlength=15).reshape(-1, 3)[:-1]
    for each, (below, reached, _) in zip(found.means, counts, strict=True):
        true = 480 * reached / (below + reached)
        assert each.mean.value is not None
        assert abs(each.mean.value - true) < 4 * each.mean.std_error
        assert abs(each.share.value - (below + reached) / there.sum()) < 4 * each.share.std_error
    assert [each.category for each in found.means] == list(ZONES)
    assert not any(each.mean.is_exact for each in found.means)


def test_both_orders_of_the_parts_name_the_same_codes(study) -> None:
    one = number_by(study.indicators.get(slug="length_by"))
    names = np.array(BY.categories)
    assert names[one.sides].tolist() == [[f"{zone} / below", f"{zone} / reached"] for zone in ZONES]
    turned = factory.indicator(
        "length_by", *(" / ".join(each) for each in product(SIDES, (*ZONES, "no value"))),
        kind="daily", column=None, parts=("length", "zone"),
    )  # fmt: skip
    other = factory.create(factory.LENGTH, ZONE, turned, slug="turned").indicators.get(slug="length_by")
    names = np.array(turned.categories)
    assert names[number_by(other).sides].tolist() == [
        [f"below / {zone}", f"reached / {zone}"] for zone in ZONES
    ]


def test_page_map_file_and_api_say_the_same(reader, client, token, study) -> None:
    query = "?from=2024-05-31&to=2024-05-31"
    page = reader.get(PAGE + query)
    found = means_report(study.indicators.get(slug="length_by"), Window(2, 2))
    text = words(page)
    assert "Mean of Length by Zone" in text
    assert f"{ZONES[0]} {found.means[0].mean.value:.1f} min" in text
    assert "Cross-tabulation" not in text
    (panel,) = page.context["means_map"]["frame"]["panels"]
    assert len(panel["texts"]) == len(ZONES)
    assert min(panel["classes"]) >= 0
    assert f"{found.means[0].mean.value:.1f} min (" in panel["texts"][0]
    rows = csv_rows(reader.get(f"{PAGE}means.csv{query}"))
    assert [row["by_category"] for row in rows] == list(ZONES)
    assert [float(row["mean"]) for row in rows] == [each.mean.value for each in found.means]
    assert reader.get(f"{PAGE}means.xlsx{query}").content[:2] == b"PK"
    headers = {"Authorization": f"Bearer {token()}"}
    home = "/api/v1/studies/fair-2024/indicators"
    answer = client.get(f"{home}/length_by/means{query}", headers=headers).json()
    assert json.loads(reader.get(f"{PAGE}means.json{query}").content)["rows"] == answer["rows"]
    assert (answer["cuts"], answer["rows"][0]["unit_of_mean"]) == (list(factory.SCALE.cuts), "min")
    assert client.get(f"{home}/zone/means{query}", headers=headers).status_code == 422
    number = words(reader.get(f"/studies/fair-2024/length/{query}"))
    assert "Mean by category: Zone" in number
    assert joint_indicators(study) == []
    asked = words(reader.get("/studies/fair-2024/questions/"))
    assert "What is the average value in each zone or category? Length by" in asked


def test_small_cells_have_no_means_and_shared_pages_no_files(reader, client, analyst, study) -> None:
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    _, text = access.create_link(study.indicators.get(slug="length_by"), Window(1, 2), **given)
    shared = words(client.get(f"/shared/{text}/"))
    assert "Mean of Length by Zone" in shared
    assert "Download" not in shared
    type(study).objects.update(small_cell=100_000)
    study.refresh_from_db()
    assert "Mean of" not in words(reader.get(f"{PAGE}?from=2024-05-31"))
    assert means_report(study.indicators.get(slug="length_by"), Window(2, 2)).means == ()
    refused = reader.get(f"{PAGE}means.csv?from=2024-05-31&to=2024-05-31")
    assert refused.status_code == 400
    with pytest.raises(NoNumberError, match="does not combine a number"):
        means_report(study.indicators.get(slug="zone"), Window(2, 2))


def test_a_zone_with_a_small_category_has_no_mean() -> None:
    """Other zones keep theirs: only this mean is made of a hidden estimate."""
    made = factory.create(factory.LENGTH, ZONE, BY, area=area(), epsilon="8", small_category=50, slug="rare")
    people = factory.crowd(made, n=12_000)
    people.daily["length_by"][:] = np.where(people.daily["length_by"] // 3 == 3, 0, people.daily["length_by"])
    people.daily["zone"][:] = np.where(people.daily["zone"] == 3, 0, people.daily["zone"])
    factory.publish(made, people)
    made = type(made).objects.get(pk=made.pk)
    found = means_report(made.indicators.get(slug="length_by"), Window(2, 2))
    assert [each.mean.status for each in found.means][3] == "suppressed"
    assert found.means[3].mean.value is found.means[3].share.value is None
    assert "ok" in {each.mean.status for each in found.means}


def test_the_statement_is_confirmed_and_says_what_the_answer_is(study) -> None:
    statement = json.loads(json.dumps(privacy_statement(study)))
    assert check(statement).texts == []
    assert "combines a number with another indicator" in to_markdown(dpia_pack(study))
    (entry,) = [each for each in statement["indicators"] if each["slug"] == "length_by"]
    assert entry["values_per_person"] == 4
    changed = json.loads(json.dumps(statement))
    changed["plan"]["spec"]["indicators"][2]["parts"] = ["zone", "length", "length"]
    assert check(changed).texts != []


def test_a_zone_without_people_has_no_mean() -> None:
    """The interval of a ratio whose whole may be none is the whole range."""
    study = factory.published(factory.LENGTH, ZONE, BY, epsilon="1", n=300, slug="few")
    found = means_report(study.indicators.get(slug="length_by"), Window(1, 1))
    blank = [each.mean for each in found.means if each.mean.value is None]
    assert blank
    assert {(each.status, each.ci_low, each.ci_high) for each in blank} == {("not_reliable", 0.0, 480.0)}


def test_a_mean_is_shown_by_the_answers_of_other_people_and_never_by_its_own_noise() -> None:
    """A zone that the answers on zones alone do not know is not shown, however narrow its own interval is."""
    made = factory.create(factory.LENGTH, ZONE, BY, area=area(), epsilon="8", slug="apart")
    people = factory.crowd(made, n=12_000)
    people.daily["zone"][:] = np.where(people.daily["zone"] == 3, 0, people.daily["zone"])
    factory.publish(made, people)
    found = means_report(made.indicators.get(slug="length_by"), Window(2, 2)).means
    assert [each.mean.status for each in found] == ["ok", "ok", "ok", "not_reliable"]
    assert (found[3].mean.ci_high - found[3].mean.ci_low) / 480 < 0.5
    assert {each.share.status for each in found} == {"ok"}


def test_without_answers_on_zones_alone_the_lower_end_of_the_share_decides() -> None:
    some_days = replace(ZONE, max_values=2)
    made = factory.published(factory.LENGTH, some_days, BY, area=area(), epsilon="4", n=12_000)
    found = means_report(made.indicators.get(slug="length_by"), Window(2, 3)).means
    assert "ok" in {each.mean.status for each in found}


def test_a_voided_day_has_no_means_and_adds_to_epsilon_as_on_other_pages(reader, study) -> None:
    factory.void(study, day=2, n=12_000)
    query = "?from=2024-05-31&to=2024-05-31"
    found = means_report(study.indicators.get(slug="length_by"), Window(2, 2))
    assert (found.means, found.report.status) == ((), "not_collected")
    pages = [reader.get(f"/studies/fair-2024/{slug}/{query}") for slug in ("length_by", "zone", "length")]
    assert "Mean of Length by Zone" not in words(pages[0])
    states = [page.context["state"] for page in pages]
    assert len({*states}) == 1 and states[0] != "report"
    assert reader.get(f"{PAGE}means.csv{query}").status_code == 400
    around = words(reader.get(f"{PAGE}?from=2024-06-01&to=2024-06-01"))
    assert "Mean of Length by Zone" in around and "The uploads for 1 published day were undone." in around
