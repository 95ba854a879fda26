"""What is scaled by the market share and what was counted never stand side by side without saying which."""

import io
import re
from decimal import Decimal

import pypdf
import pytest
from django.test import Client
from django.urls import reverse

from reports import selectors, wording
from reports.exports.formats import render_file
from reports.exports.selection import select_days, select_window
from reports.models import Study
from reports.selectors import Window, WindowReport
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
UNSCALED = "Visitors (exact, not scaled)"


@pytest.fixture
def fifth() -> Study:
    """A study of 4,000 people, four fifths of those who were there."""
    study = factory.create(market_share=Decimal("0.8"))
    factory.publish(study, factory.crowd(study))
    return study


def report_of(study: Study) -> WindowReport:
    return selectors.window_report(study.indicators.get(slug="gender"), Window(1, 4))


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_summary_says_the_scaled_number_and_which_was_counted(fifth: Study) -> None:
    report = report_of(fifth)
    seen = report.n_visitors
    assert seen is not None
    assert report.scale == pytest.approx(seen / 0.8)
    assert sum(estimate.visitors or 0 for estimate in report.estimates) == pytest.approx(report.scale)
    assert wording.report_summary(report).startswith(
        f"Of an estimated {wording.number(seen / 0.8)} visitors ({wording.number(seen)} seen by the network, "
        f"market share {wording.percent(0.8)}), an estimated "
    )


def test_summary_without_a_market_share_says_one_number(fair: Study) -> None:
    report = report_of(fair)
    assert wording.report_summary(report).startswith(
        f"Of {wording.number(report.n_visitors)} visitors, an estimated "
    )
    assert wording.visitors_title(fair) == "Visitors (exact)"


def test_pages_name_every_total_that_is_not_scaled(reader: Client, fifth: Study) -> None:
    place = [fifth.slug, "gender"]
    for name in ("indicator", "days"):
        text = text_of(reader.get(reverse(f"reports:{name}", args=place)).content.decode())
        assert UNSCALED in text
        assert "Visitors (exact)" not in text
    study = text_of(reader.get(reverse("reports:study", args=[fifth.slug])).content.decode())
    assert study.count("seen by the network, not scaled") == 1
    cards = text_of(reader.get(reverse("reports:studies")).content.decode())
    assert "Visitors, all days (exact, not scaled)" in cards


def test_pdf_names_the_total_that_is_not_scaled(fifth: Study) -> None:
    gender = fifth.indicators.get(slug="gender")
    for selection in (select_window(gender, Window(1, 4)), select_days(gender)):
        book = pypdf.PdfReader(io.BytesIO(render_file(selection, ending="pdf")))
        text = " ".join(" ".join(page.extract_text() for page in book.pages).split())
        assert "seen by the network" in text
        assert "Visitors (exact)" not in text
        assert UNSCALED in text


def test_movements_name_the_total_that_is_not_scaled(reader: Client, fifth: Study) -> None:
    html = reader.get(reverse("reports:movement", args=[fifth.slug, "gender"])).content.decode()
    assert "All visitors (exact, not scaled)" in text_of(html)
