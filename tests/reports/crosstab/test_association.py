"""The test of association on stored reports: page, file and API say the same, and when there is none."""

import csv
import io

import numpy as np
import pytest
from django.http import QueryDict

from ldp.estimation.joint.association import independence_test, margin_of
from reports.crosstab.association import verdict_of
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import measure, reports_of
from reports.crosstab.query import view_of
from reports.estimates.queries import Window, reports_with_tallies, visitor_unions
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published
from tests.reports.page_texts import words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/crosstab/"
API = "/api/v1/studies/fair-2024/indicators/age_town/association"


def verdict(study, query: str = ""):
    (joint,) = joint_indicators(study)
    view = view_of(QueryDict(query), [joint], visitors=visitor_unions(study))
    return verdict_of(measure(joint, view.window), view)


def test_page_file_and_api_have_the_result_of_the_library(reader, client, analyst) -> None:
    study = published(AGE, TOWN, epsilon="3", unknown={"age": 0.2})
    (joint,) = joint_indicators(study)
    window = Window(1, 4)
    indicators = [study.indicators.get(slug=slug) for slug in ("age", "town")]
    loaded = reports_with_tallies(indicators, [[window], [window]])
    age, town = (margin_of(reports_of(report, tallies), asked=1 / 3) for ((report,), tallies) in loaded)
    assert age.has_value == pytest.approx(0.8, abs=0.1)
    layout = np.arange(28).reshape(4, 7, 1)[:3, :6]
    expected = independence_test(measure(joint, window).reports, layout=layout, rows=age, columns=town)
    found = verdict(study, "rows=age")
    assert found.found == expected and expected.degrees == 2 * 5
    page = words(reader.get(f"{PAGE}?rows=age"))
    assert found.sentence in page and found.limits in page
    text = reader.get("/studies/fair-2024/crosstab.csv?rows=age").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["association"], float(row["association_p_value"])) for row in rows} == {
        (found.sentence, expected.p_value)
    }
    client.force_login(analyst)
    answer = client.get(f"{API}?rows=age").json()
    assert (answer["sentence"], answer["p_value"]) == (found.sentence, expected.p_value)
    assert answer["go_together"] == (expected.p_value < 0.05)
    refused = (f"{API}?rows=gender", API.replace("age_town", "age"))
    assert [client.get(address).status_code for address in refused] == [422, 422]


def test_what_goes_together_is_said_and_what_may_not_too() -> None:
    apart = verdict(published(AGE, TOWN, epsilon="6", n=2000))
    assert (
        apart.is_together is False
        and "No association between Town and Age is visible (p = 0." in apart.sentence
    )
    # Missing towns depend on nothing; people of one age live in one town.
    together = verdict(published(AGE, TOWN, epsilon="6", n=2000, slug="other", bound={"town": "age"}))
    assert together.is_together is True and together.sentence.endswith("go together (p < 0.001).")


def test_without_answers_for_it_there_is_no_test_and_the_reason() -> None:
    three = published(GENDER, AGE, TOWN, epsilon="6", n=3000)
    assert verdict(three, "rows=town&columns=age").found.degrees == 5 * 2
    fixed = verdict(three, "rows=town&columns=age&within=1")
    assert (fixed.found, fixed.is_together) == (None, None)
    assert fixed.sentence.startswith("The test of Town and Age is for all visitors")
    three.indicators.get(slug="gender_age_town")
    type(three).objects.update(small_cell=100_000)
    assert verdict(three).sentence.startswith("The test needs answers on ")
