"""Every file that a page hands out leads to the privacy statement of its study."""

import pytest
from django.test import Client
from django.urls import reverse

from reports.exports.formats import formats_for
from reports.exports.selection import Scope
from reports.models import Study

pytestmark = pytest.mark.django_db
STATEMENT = "/studies/fair-2024/statement.json"


@pytest.mark.parametrize(
    "address",
    [
        *(f"/studies/fair-2024/export.{each.ending}" for each in formats_for(Scope.STUDY)),
        *(f"/studies/fair-2024/gender/export.{each.ending}" for each in formats_for(Scope.WINDOW)),
        *(f"/studies/fair-2024/gender/days.{each.ending}" for each in formats_for(Scope.DAYS)),
        "/studies/fair-2024/gender/compare.csv?kind=baseline&from=2024-05-30&to=2024-05-30",
        "/studies/fair-2024/gender/movement.csv",
        "/studies/fair-2024/bundle.zip",
        STATEMENT,
    ],
)
def test_its_header_names_the_statement(reader: Client, fair: Study, address: str) -> None:
    response = reader.get(address)
    assert response.status_code == 200
    assert response["Link"] == f'<{STATEMENT}>; rel="describedby"'


def test_that_address_is_the_statement(reader: Client, fair: Study) -> None:
    assert reverse("reports:statement_file", args=[fair.slug]) == STATEMENT
    assert reader.get(STATEMENT).json()["study"]["slug"] == fair.slug


def test_files_with_facts_name_it_inside(reader: Client, fair: Study) -> None:
    assert STATEMENT in reader.get("/studies/fair-2024/gender/export.svg").content.decode()
