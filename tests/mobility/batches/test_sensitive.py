"""Answers that hide sensitive categories only, from files to totals: the same in any order of the files."""

import numpy as np
import pytest
from django.utils import timezone

import ldp
from ldp.estimation.unions import union
from reports.transfer.studies import Approval
from tests.demo_study import parsed_study
from tests.mobility.pipeline import halves_of
from tests.study_text import columns, static, study_text

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
DAYS = 2
PLACES = ("clinic", "shelter", "shop", "park")  # the first two are sensitive
HIDDEN = 'protect = "sensitive"\nsensitive = ["clinic", "shelter"]\n'
APPROVED = Approval(review="approved", by="eve", at=timezone.now())


@pytest.fixture(scope="module")
def definition():
    text = study_text(
        static("place", *PLACES) + HIDDEN,
        slug="open",
        name="Open",
        first_day="2024-03-01",
        days=DAYS,
        study="min_publication = 5\n",
        extract=columns(),
    )
    return parsed_study(text.replace("[plan]\n", "[plan]\ndiscloses_values = true\n"))


@pytest.fixture
def files(tmp_path):
    """A file for each day; of 400 people 100 are in each place."""
    for day in (1, 2):
        rows = [
            f"p{n},2024-03-0{day}T{hour}:00:00,{PLACES[n % 4]}\n"
            for n in range(400)
            if (n // 4 + day) % 3
            for hour in (10, 12)
        ]
        (tmp_path / f"day{day}.csv").write_text("msisdn,time,place\n" + "".join(rows))
    return [tmp_path / f"day{day}.csv" for day in (1, 2)]


def test_totals_are_the_same_in_any_order_in_parts_sent_twice_and_after_an_undone_day(
    make_pipeline, definition, files, tmp_path
):
    plain = make_pipeline(approval=APPROVED)
    plain.upload(*files)
    expected = plain.tallies()
    other = make_pipeline(approval=APPROVED, slug="other")
    first, second = halves_of(files[1], tmp_path)
    other.upload(second, more_to_come=True)
    other.upload(first, files[0], files[0])
    assert other.tallies() == expected
    other.void_day(1)
    assert other.tallies() != expected
    other.upload(files[0])
    assert other.tallies() == expected


def test_answers_disclose_what_is_not_sensitive_and_name_it_for_no_one_else(make_pipeline, files):
    pipeline = make_pipeline(approval=APPROVED)
    pipeline.upload(*files)
    plan = ldp.PlanSpec.from_json(pipeline.study.plan)
    channel = plan.answer_channel(0)
    shape = (channel.n_codes, DAYS + 1, DAYS + 1)
    counts = np.frombuffer(pipeline.tallies()["place"], "<i8").reshape(shape)
    clinic, shelter, shop, park = union(counts, first_day=1, last_day=DAYS).tolist()
    assert clinic + shelter + shop + park == 400
    assert 0 < shop < 100 and 0 < park < 100  # a person in a shop says so, or names a sensitive place
    assert clinic + shelter > 200
