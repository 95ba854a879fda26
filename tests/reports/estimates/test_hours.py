"""Hours of the day on pages, in their order, and in the statement."""

import json
import re
from dataclasses import replace

import pytest

from reports.estimates import options, queries
from reports.estimates.queries import Window
from reports.models import Study
from reports.privacy.statement.document import privacy_statement
from reports.studies.studyfile.hours import HOURS, HOURS_FR
from scripts.check_statement import check
from tests.reports import report_factory as factory
from tests.reports.page_texts import words

pytestmark = pytest.mark.django_db
ARRIVAL = factory.indicator(
    "arrival", *HOURS, kind="daily", column=None, derive="first_hour", categories_fr=HOURS_FR
)


def test_hours_stay_in_their_order_on_the_page(reader) -> None:
    factory.published(ARRIVAL, factory.GENDER, epsilon="2", n=6000)
    text = words(reader.get("/studies/fair-2024/arrival/?from=2024-05-30"))
    assert re.findall(r"(\d\d):00 to \d\d:59", text.split("Consistent share")[1])[:24] == [
        f"{hour:02d}" for hour in range(24)
    ]
    assert "Largest first" not in text
    assert "Largest first" in words(reader.get("/studies/fair-2024/gender/?from=2024-05-30"))


def test_a_tile_has_the_largest_hours_in_their_order(reader) -> None:
    study = factory.create(ARRIVAL, epsilon="8", days=1)
    people = factory.crowd(study, n=6000)  # the most are there in the first hours: turned round, in the last
    factory.publish(study, replace(people, daily={"arrival": 23 - people.daily["arrival"]}))
    report = queries.window_report(study.indicators.get(), Window(1, 1))
    found = options.largest(report, options=options.ReportOptions(), most=6)
    places = [report.estimates.index(each) for each in found]
    assert places == sorted(places)
    others = [each.frequency for each in report.estimates if each not in found]
    assert min(each.frequency for each in found) >= max(others)
    table = reader.get("/studies/fair-2024/").content.decode().split('<th scope="col">Category</th>')[1]
    shown = re.findall(r'<th scope="row">(\d\d:00 to \d\d:59)</th>', table.split("</tbody>")[0])
    assert shown == [each.category for each in found]


@pytest.mark.parametrize(
    "mechanism", ["smp-grr", "smp-oue", "smp-question", "smp-loloha", "smp-stream", "spl-grr", "rsfd-grr"]
)
def test_the_statement_is_confirmed_under_each_mechanism(mechanism) -> None:
    factory.create(ARRIVAL, factory.GENDER, mechanism=mechanism, epsilon="1.3")
    statement = json.loads(json.dumps(privacy_statement(Study.objects.get())))
    assert check(statement).texts == []
    expected = {"smp-question": "question", "smp-loloha": "loloha", "spl-grr": "grr", "rsfd-grr": "grr"}
    assert statement["indicators"][0]["protocol"] == expected.get(mechanism, "projective")
