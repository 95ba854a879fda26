"""Answers that tell the group, from files to totals: codes of the right group, undone days, changes."""

import numpy as np
import pytest

import ldp
from ldp.estimation.partial.regions import reports_of_regions
from ldp.estimation.unions import union
from tests.demo_study import parsed_study
from tests.study_text import columns, daily, static, study_text

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
DAYS = 2
COLOURS = ("red", "green", "blue", "white", "black")
GROUPS = 'protect = "in_groups"\ngroups = { bright = ["red", "white"], dark = ["green", "blue", "black"] }\n'
REGION_OF = (0, 1, 1, 0, 1)


@pytest.fixture(scope="module")
def definition():
    text = study_text(
        static("colour", *COLOURS) + GROUPS,
        daily("visit_duration"),
        slug="told",
        name="Told",
        first_day="2024-03-01",
        days=DAYS,
        study="min_publication = 5\n",
        extract=columns(),
        epsilon="0.01",  # inside a group an answer says next to nothing
    )
    return parsed_study(text)


def files(folder) -> dict[str, str]:
    """Two files, and the colour of each person."""
    colour_of = {f"p{n}": COLOURS[n * n % 5] for n in range(400)}
    for day in (1, 2):
        rows = [
            f"{who},2024-03-0{day}T{hour}:00:00,{colour}\n"
            for n, (who, colour) in enumerate(colour_of.items())
            if (n + day) % 3
            for hour in (10, 12)
        ]
        (folder / f"day{day}.csv").write_text("msisdn,time,colour\n" + "".join(rows))
    return colour_of


def test_totals_have_each_answer_in_the_group_of_its_person(make_pipeline, tmp_path):
    colour_of = files(tmp_path)
    paths = [tmp_path / f"day{day}.csv" for day in (1, 2)]
    pipeline = make_pipeline()
    pipeline.upload(*paths)
    plan = ldp.PlanSpec.from_json(pipeline.study.plan)
    channel = plan.answer_channel(0)
    shape = (channel.n_codes, DAYS + 1, DAYS + 1)
    counts = np.frombuffer(pipeline.tallies()["colour"], "<i8").reshape(shape)
    codes = union(counts, first_day=1, last_day=DAYS)
    asked = int(codes.sum())
    told = reports_of_regions(codes, channel=channel)
    here = [REGION_OF[COLOURS.index(each)] for each in colour_of.values()]
    assert 150 < asked < 250
    # Half of the people are asked, of all colours alike: within five standard errors.
    assert abs(told[0] / asked - here.count(0) / len(here)) < 5 * (0.25 / asked / 2) ** 0.5
    before = pipeline.tallies()
    pipeline.void_day(2)
    pipeline.upload(paths[1])
    assert pipeline.tallies() == before


def test_the_group_of_every_single_report_is_that_of_the_person(make_pipeline, tmp_path):
    """All people of one group: no report is of the other one, although answers are drawn nearly evenly."""
    rows = [f"p{n},2024-03-01T{hour}:00:00,{COLOURS[n % 2 * 3]}\n" for n in range(300) for hour in (10, 12)]
    path = tmp_path / "day1.csv"
    path.write_text("msisdn,time,colour\n" + "".join(rows))
    pipeline = make_pipeline()
    pipeline.upload(path)
    plan = ldp.PlanSpec.from_json(pipeline.study.plan)
    counts = np.frombuffer(pipeline.tallies()["colour"], "<i8").reshape(5, DAYS + 1, DAYS + 1)
    codes = union(counts, first_day=1, last_day=1)
    first, second = reports_of_regions(codes, channel=plan.answer_channel(0)).tolist()
    assert (first > 100, second) == (True, 0)
    assert codes[:2].min() > first / 3
