"""The calendar of days and sources, counts of rows as JSON; files and days next to earlier ones."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import json
from collections import Counter
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from mobility.batches.quality import look_back as module
from mobility.batches.quality import words
from mobility.batches.quality.coverage import DayStatus, cover
from mobility.batches.quality.facts import Facts, Share, checks_of, columns_of_reasons, merged_checks
from mobility.batches.quality.look_back import LEAST_HOUR_ROWS, LEAST_USUAL, SilentHours, like_days, look_back
from mobility.extracts.profiles.definition import Profile, default_profile
from mobility.extracts.rows.counts import RowCounts
from mobility.vault.models.batch import Batch
from tests.mobility.batches.quality.deliveries_by_hand import START, calendar, day_hours, delivery, history
from tests.mobility.extracts.profiles.made_profiles import definition
from tests.reports.page_texts import plain

FULL, GAP = day_hours(100), day_hours(100, silent=(9,))
BEFORE = (delivery(1, {1: FULL}), delivery(2, {2: FULL}))


def covered(
    *files, undone=None, closed=frozenset(), today=date(2024, 7, 1), sources=("default",), created=None
):
    """The calendar of `sources`, whose profiles were created on the days `created` or are built in."""
    found, created_of = history(*files, undone=undone), {name: (created or {}).get(name) for name in sources}
    return cover(found, calendar=calendar(3), sources=created_of, closed=closed, today=today)


def statuses(coverage, source=0):
    return [day.status.value for day in coverage.sources[source].days]


class TestHours:
    @pytest.mark.parametrize(
        ("study", "day", "expected"),
        [(calendar(hours=(6, 23)), 1, (*range(6, 24),)),
         (calendar(days=3, start=date(2024, 3, 30), hours=(0, 4)), 1, (0, 1, 2, 3, 4)),
         (calendar(days=3, start=date(2024, 3, 30), hours=(0, 4)), 2, (0, 1, 3, 4)),  # 2:00 is skipped
         (calendar(days=1, start=date(2024, 10, 27), hours=(0, 4)), 1, (0, 1, 2, 3, 4)),
         # of the hour from 2:00 half is skipped
         (calendar(1, start=date(2024, 10, 6), hours=(0, 4), timezone="Australia/Lord_Howe"), 1, (0, 1, 2, 3, 4))],
    )  # fmt: skip
    def test_rows_are_expected_in_visitor_hours_that_the_clock_has(self, study, day, expected):
        assert study.visitor_hours(day) == expected


class TestHistory:
    def test_what_was_there_before_a_moment_is_strictly_earlier(self):
        files = [delivery(at, {1: FULL}) for at in (1, 2, 3)]
        found = history(*files, undone={1: [1, 2, 3]}).before(START + timedelta(hours=2))
        assert (found.deliveries, dict(found.undone)) == ((files[0],), {1: (START + timedelta(hours=1),)})

    def test_the_last_time_that_a_day_was_undone_counts(self):
        files = [delivery(at, {1: FULL, 2: FULL}) for at in (1, 3, 5)]
        found = history(*files, undone={1: [2, 4]})
        assert (found.taken_in(1), found.taken_in(2)) == ([files[2]], files)

    def test_a_row_without_all_its_columns_has_no_empty_values(self):
        row = {
            "pk": START, "profile": "default", "filename": "a", "state": "done", "failure": "",
            "more_to_come": False, "finished_at": START, "days_touched": [], "rows_read": 100, "checks": {},
            "content_hash": "", "rows_accepted": 69,
            "rows_rejected": {"wrong_columns": 1, "bad_text": 2, "bad_timestamp": 4},
            "rows_ignored": {"opted_out": 8, "outside_hours": 16},
        }  # fmt: skip
        found = type(delivery(1)).of(row)
        assert (found.rows_formed, found.rows_rejected) == (100 - 1 - 2 - 8, 7)


BAD = delivery(2, {1: FULL}, failure="refused: too many")
WAITING = delivery(1, {1: FULL}, more_to_come=True)


class TestDays:
    @pytest.mark.parametrize(
        ("files", "options", "expected"),
        [([delivery(1, {1: FULL}), delivery(2, {3: FULL})], {}, "complete missing complete"),
         ([], {"today": date(2024, 5, 2)}, "missing not_due not_due"),
         ([WAITING], {}, "partial missing missing"),
         ([WAITING, delivery(2, {1: FULL})], {}, "complete missing missing"),
         ([WAITING], {"closed": {1}}, "complete missing missing"),
         ([delivery(1, {1: GAP, 2: FULL, 3: FULL})], {}, "partial complete complete"),
         # a day that waits is no measure of others
         ([WAITING, delivery(2, {2: GAP, 3: FULL})], {}, "partial complete complete"),
         # the last file of a day decides
         ([delivery(1, {1: FULL}), BAD], {}, "failed missing missing"),
         ([BAD, delivery(3, {1: FULL})], {}, "complete missing missing"),
         ([delivery(1, {1: FULL, 2: FULL})], {"undone": {1: [2], 3: [2]}}, "undone complete missing"),
         ([delivery(1, {1: FULL}), delivery(3, {1: FULL})], {"undone": {1: [2]}}, "complete missing missing"),
         # a failed file does not make a day undone
         ([delivery(1, {1: FULL}, failure="refused")], {"undone": {1: [2]}}, "missing missing missing")],
    )  # fmt: skip
    def test_days_have_a_state(self, files, options, expected):
        assert statuses(covered(*files, **options)) == expected.split()

    def test_days_say_what_they_hold_and_what_is_wrong(self):
        again = [delivery(1, {1: FULL}), delivery(3, {1: FULL})]
        for files, options, rows, n_files, failed in (
            ([WAITING, delivery(2, {1: FULL})], {}, 800, 2, None),
            ([delivery(1, {1: FULL}), BAD], {}, 400, 1, BAD),
            ([BAD, delivery(3, {1: FULL})], {}, 400, 1, None),
            (again[:1], {"undone": {1: [2]}}, 0, 0, None),
            (again, {"undone": {1: [2]}}, 400, 1, None),
        ):
            found = covered(*files, **options)
            (day, *_), unattributed = found.sources[0].days, found.unattributed
            assert (day.rows, len(day.files), day.failed, unattributed) == (rows, n_files, failed, ())
        assert covered(WAITING).sources[0].days[0].more_to_come
        silent = covered(delivery(1, {1: GAP, 2: FULL, 3: FULL})).sources[0].days[0].silent
        assert [(hours.begin, hours.end) for hours in silent] == [(9, 10)]

    def test_each_source_has_days_of_its_own(self):
        files = [delivery(1, {1: FULL}), delivery(2, {2: FULL}, source="roaming")]
        found = covered(*files, sources=("default", "roaming"))
        assert [source.source for source in found.sources] == ["default", "roaming"]
        assert statuses(found, 0) == ["complete", "missing", "missing"]
        assert statuses(found, 1) == ["not_expected", "complete", "missing"]
        assert [source.count(DayStatus.COMPLETE) for source in found.sources] == [1, 1]

    def test_a_new_source_owes_no_day_that_others_brought_before_it(self):
        files = [delivery(1, {1: FULL}), delivery(2, {3: FULL})]
        expected = ["not_expected", "missing", "not_expected"]
        assert statuses(covered(*files, sources=("default", "new")), 1) == expected
        refused = delivery(3, {3: FULL}, source="new", failure="refused")
        assert statuses(covered(*files, refused, sources=("default", "new")), 1)[2] == "failed"

    def test_a_source_owes_the_days_from_its_creation_or_from_its_first_day_if_that_is_earlier(self):
        files = [delivery(1, {1: FULL, 2: FULL, 3: FULL}), delivery(2, {2: FULL}, source="late")]
        for name, created, expected in (
            ("silent", 1, "missing missing missing"),
            ("silent", 2, "not_expected missing missing"),
            ("silent", 4, "not_expected not_expected not_expected"),
            ("late", 1, "missing complete missing"),
            ("late", 3, "not_expected complete missing"),
        ):
            found = covered(*files, sources=("default", name), created={name: date(2024, 5, created)})
            assert statuses(found, 1) == expected.split(), (name, created)

    @pytest.mark.parametrize(
        ("days", "about", "is_made_up"),
        [({1: FULL}, {}, True),
         ({2: FULL}, {}, True),  # the same source may correct its days
         ({}, {"rejected": 9}, False),  # no row counts
         ({1: FULL, 2: FULL}, {"source": "french"}, True),
         ({2: FULL}, {"source": "french"}, False),
         ({1: FULL}, {"source": "french", "filename": "other.csv"}, False),
         ({2: FULL}, {"source": "french", "content": "c"}, True),
         ({1: FULL}, {"source": "french", "content": "d"}, False),
         ({}, {"source": "french", "content": "c", "rejected": 9}, False)],
    )  # fmt: skip
    def test_a_failed_file_is_made_up_for_by_the_same_name_or_with_another_profile_by_the_same_file(
        self, days, about, is_made_up
    ):
        content = "c" if "content" in about else ""
        for failed_days in ({1: FULL}, {}):
            about = {"filename": "may.csv", **about}
            failed = delivery(1, failed_days, filename="may.csv", failure="refused", content=content)
            found = covered(failed, delivery(2, days, **about), sources=("default", "french"))
            # a file whose days are unknown is recognised by its content alone
            is_gone = is_made_up and (bool(failed_days) or "source" not in about or bool(content))
            assert (found.sources[0].days[0].failed is not None, found.unattributed != ()) == (
                bool(failed_days) and not is_gone, not failed_days and not is_gone,
            )  # fmt: skip

    def test_a_file_that_failed_after_it_was_published_or_has_another_name_is_not_made_up_for(self):
        published = delivery(2, {1: FULL}, filename="may.csv", source="french")
        again = delivery(3, {1: FULL}, filename="may.csv", failure="refused: too many")
        other = delivery(1, {1: FULL}, filename="june.csv", failure="refused: too many")
        for files in ((published, again), (other, published)):
            assert statuses(covered(*files, sources=("default", "french")))[0] == "failed"

    def test_a_file_without_days_is_named_apart_until_it_has_come_under_the_same_name(self):
        broken = delivery(1, filename="may.csv", failure="truncated", content="c")
        others = [delivery(2, {1: FULL}, filename="june.csv"),
                  delivery(3, {1: FULL}, filename="may.csv", source="roaming", failure="refused")]  # fmt: skip
        assert covered(broken, *others).unattributed == (broken,)
        assert covered(broken, *others, delivery(4, {1: FULL}, filename="may.csv")).unattributed == ()
        roaming = delivery(4, {1: FULL}, filename="may.csv", source="roaming", content="c")
        assert covered(broken, roaming).unattributed == ()  # the profile was wrong
        files = [delivery(at, filename=name, failure="no") for at, name in enumerate("aba", start=1)]
        assert covered(*files).unattributed == (files[2], files[1])  # the newest first, and each name once


PROFILE = default_profile(definition())


@pytest.fixture
def counts() -> RowCounts:
    hours = np.zeros((3, 24), np.int64)
    hours[1, 8:10] = (5, 7)
    return RowCounts(
        rows_read=20, accepted=12, empty=Counter(age=3), hours=hours,
        unmatched_cells=Counter({"208-01-1-13": 1, "208-01-1-99": 5, "206-01-1-11": 1}), unmatched_more=6,
        unmatched_hidden=4, located=30, locatable_of=47, first_event=1714543200, last_event=1714550400,
    )  # fmt: skip


def stored(counts):
    return Facts.of(json.loads(json.dumps(checks_of(counts, profile=PROFILE))))


class TestFacts:
    def test_facts_come_back_as_they_were_counted(self, counts):
        facts = stored(counts)
        assert dict(facts.empty) == {"msisdn": 0, "time": 0, "cell_id": 0, "age": 3, "gender": 0, "region": 0}
        assert (facts.located, facts.locatable_of) == (30, 47)
        assert (facts.first_event, facts.last_event) == (1714543200, 1714550400)
        assert dict(facts.hours) == {2: (0,) * 8 + (5, 7) + (0,) * 14}
        assert facts.duplicates is facts.duplicates_of is facts.subscribers is None

    def test_unmatched_cells_stand_in_order_and_all_rows_are_accounted_for(self, counts):
        facts = stored(counts)
        assert facts.unmatched_cells == (("208-01-1-99", 5), ("206-01-1-11", 1), ("208-01-1-13", 1))
        assert (facts.unmatched_more, facts.unmatched_hidden) == (6, 4)
        assert facts.unmatched == Share(part=47 - 30, of=47)

    @pytest.mark.parametrize(("located", "n"), [(23, 0), (24, 3)])
    def test_where_most_rows_have_no_cell_none_is_kept(self, counts, located, n):
        counts.located, counts.locatable_of = located, 48
        facts = stored(counts)
        assert (len(facts.unmatched_cells), facts.is_rather_no_cell) == (n, n == 0)
        assert sum(rows for _, rows in facts.unmatched_cells) + facts.unmatched_hidden == 11

    def test_each_reason_names_the_columns_that_it_can_concern(self):
        columns = columns_of_reasons(PROFILE)
        assert columns["bad_timestamp"] == columns["nonexistent_time"] == ["time"]
        assert columns["empty_cell"] == columns["outside_area"] == ["cell_id"]
        assert columns["unknown_value"] == ["gender", "age", "region"]
        assert "wrong_columns" not in columns
        attributes = {"age": "years", "band": "years"}
        people = Profile(name="people", kind="subscribers", subscriber="id", columns=attributes)
        # neither times nor cells
        expected = {"empty_subscriber": ["id"], "opted_out": ["id"], "unknown_value": ["years"]}
        assert columns_of_reasons(people) == expected

    def test_unknown_values_name_the_columns_that_had_them_most_rows_first(self, counts):
        counts.unknown.update({"age": 2, "region": 40})
        assert stored(counts).columns["unknown_value"] == ("region", "age")

    def test_merged_facts_are_added(self):
        counted = {"duplicates": 10, "subscribers": 7, "day_subscribers": {2: 5, 3: 0, 1: 4}}
        facts = Facts.of(json.loads(json.dumps(merged_checks({"located": 5}, rows=40, **counted))))
        assert (facts.located, facts.duplicates, facts.duplicates_of, facts.subscribers) == (5, 10, 40, 7)
        assert dict(facts.day_subscribers) == {1: 4, 2: 5}

    def test_what_was_not_read_has_no_facts_and_a_share_of_nothing_no_value(self):
        facts = Facts.of({})
        assert (dict(facts.empty), dict(facts.hours), facts.unmatched.part) == ({}, {}, 0)
        assert (Share(part=0, of=0).value, Share(part=1, of=4).value) == (None, 0.25)


def compared(new, *earlier, undone=None, days=14):
    return look_back(new, history=history(*earlier, undone=undone), calendar=calendar(days))


def figures(found, figure):
    return [(c.day, c.value, c.usual, c.verdict) for c in found.comparisons if c.figure == figure]


def at_eight(rows):
    return [rows if hour == 8 else 0 for hour in range(24)]


@pytest.mark.parametrize(
    ("day", "others", "expected"),
    [(15, [1, 8, 9, 14], ([1, 8], "weekday")),
     (15, [8, 9, 14], ([8, 9, 14], "days")),  # one Wednesday alone is not enough
     (8, [15, 1, 2], ([15, 1], "weekday")),  # a later day of the study may have come earlier
     (1, [], ([], "days")),
     (1, [1], ([], "days"))],
)  # fmt: skip
def test_two_of_the_same_weekday_are_enough(day, others, expected):
    assert like_days(day, others, calendar(days=15)) == expected


WEEKS = [delivery(day, {day: day_hours(100 if day in (1, 8) else 10)}) for day in range(1, 15)]
THREE = [delivery(day, {day: day_hours(rows)}) for day, rows in ((1, 100), (2, 120), (3, 900))]
NOT_OURS = ({"source": "roaming"}, {"failure": "no"}, {})
ODD = [delivery(at, {at: day_hours(900)}, **about) for at, about in enumerate(NOT_OURS, start=1)]
ROWS = {
    "the median of the days before": (delivery(4, {4: day_hours(110)}), THREE, {}, [(4, 440, 480, "usual")]),
    "only the same weekday where there are two": (delivery(15, {15: FULL}), WEEKS, {}, [(15, 400, 400, "usual")]),
    "too few rows to judge": (delivery(2, {2: day_hours(500)}), [delivery(1, {1: at_eight(LEAST_USUAL - 1)})], {}, [(2, 2000, LEAST_USUAL - 1, "few")]),
    "earlier days of the same file": (delivery(1, {1: FULL, 2: FULL, 3: day_hours(10)}), [], {}, [(2, 400, 400, "usual"), (3, 40, 400, "low")]),
    "files of one day, which add up": (delivery(3, {2: day_hours(50)}), [BEFORE[0], delivery(2, {2: day_hours(50)}, more_to_come=True)], {}, [(2, 400, 400, "usual")]),
    "nothing while they wait for their last file": (delivery(2, {2: day_hours(1, silent=(9,))}, more_to_come=True), BEFORE[:1], {}, []),
    "no day that waits for files": (delivery(2, {2: FULL}), [delivery(1, {1: day_hours(1000)}, more_to_come=True)], {}, []),
    "no other source, failed file or undone day": (delivery(9, {5: FULL}), [*ODD, delivery(4, {4: FULL})], {3: [5]}, [(5, 400, 400, "usual")]),
    "what came again after it was undone, once": (delivery(4, {2: FULL}), [delivery(1, {1: day_hours(900)}), delivery(3, {1: FULL})], {1: [2]}, [(2, 400, 400, "usual")]),
}  # fmt: skip


@pytest.mark.parametrize(("new", "before", "undone", "expected"), ROWS.values(), ids=ROWS)
def test_rows_of_a_day_are_compared_with(new, before, undone, expected):
    found = compared(new, *before, undone=undone, days=15)
    assert figures(found, "rows") == expected
    assert (found.n_warnings, found.silent) == (sum(verdict == "low" for *_, verdict in expected), ())
    assert found.days_wait == new.more_to_come


def test_a_comparison_says_what_it_is_made_of():
    for before, expected in ((WEEKS[:3], (3, "days")), (WEEKS, (2, "weekday"))):
        found = compared(delivery(15, {15: FULL}), *before, days=15)
        assert [(c.n, c.basis) for c in found.comparisons if c.figure == "rows"] == [expected]


@pytest.mark.parametrize(
    ("rows", "verdict"), [(49, "low"), (50, "usual"), (200, "usual"), (201, "high"), (0, "low")]
)
def test_bounds_belong_to_what_is_usual(rows, verdict):
    assert (module.LOW_FACTOR, module.HIGH_FACTOR) == (0.5, 2.0)
    found = compared(delivery(2, {2: at_eight(rows)}), delivery(1, {1: at_eight(100)}))
    assert figures(found, "rows") == [(2, rows, 100, verdict)]


def test_subscribers_of_days_of_one_file_are_compared_and_those_of_several_do_not_add_up():
    before = [delivery(at, {1: FULL}, day_subscribers={"1": 50}) for at in (1, 2)]
    new = delivery(3, {2: FULL}, day_subscribers={"2": 20})
    assert figures(compared(new, before[0]), "subscribers") == [(2, 20, 50, "low")]
    assert figures(compared(new, *before), "subscribers") == []


class TestShares:
    def test_rejected_rows_are_compared_with_earlier_files(self):
        before = [delivery(at, {at: FULL}, rejected=4) for at in (1, 2)]
        found = compared(delivery(3, {3: FULL}, rejected=100), *before)
        assert figures(found, "rejected") == [(None, 0.2, 4 / 404, "high")]

    @pytest.mark.parametrize(
        ("usual", "now", "verdict"),
        [(100, 200, "usual"), (100, 201, "high"), (0, 10, "usual"), (0, 11, "high"), (5, 14, "usual"),
         (500, 0, "usual")],
    )  # fmt: skip
    def test_it_takes_both_a_factor_and_a_difference(self, usual, now, verdict):
        """Files of 1,000 rows each."""
        assert (module.SHARE_FACTOR, module.SHARE_POINTS) == (2.0, 0.01)
        files = [delivery(at, {at: at_eight(1000)}, empty={"age": n}) for at, n in ((1, usual), (2, now))]
        assert figures(compared(files[1], files[0]), "empty") == [(None, now / 1000, usual / 1000, verdict)]

    def test_a_column_that_earlier_files_did_not_have_is_not_compared(self):
        before = delivery(1, {1: FULL}, empty={"age": 0})
        found = compared(delivery(2, {2: FULL}, empty={"age": 0, "gender": 400}), before)
        assert [c.column for c in found.comparisons if c.figure == "empty"] == ["age"]

    def test_they_are_compared_though_days_wait_and_failed_files_are_no_measure(self):
        refused = delivery(1, {1: FULL}, rejected=400, failure="refused")
        new = delivery(3, {2: FULL}, rejected=100, more_to_come=True)
        assert figures(compared(new, refused, BEFORE[1]), "rejected") == [(None, 0.2, 0, "high")]

    def test_the_first_file_and_one_without_rows_have_nothing_beside_them(self):
        assert compared(delivery(1, {1: FULL}, empty={"age": 10})).comparisons == ()
        assert compared(delivery(2), BEFORE[0]).comparisons == ()


class TestSilence:
    @pytest.mark.parametrize(
        ("silent", "expected"), [((9, 10), [(9, 11, 200)]), ((8, 10), [(8, 9, 100), (10, 11, 100)])]
    )
    def test_hours_in_a_row_are_one_silence(self, silent, expected):
        found = compared(delivery(3, {3: day_hours(100, silent=silent)}), *BEFORE)
        hours = [SilentHours(day=3, begin=begin, end=end, usual=usual) for begin, end, usual in expected]
        assert (found.silent, found.n_warnings) == (tuple(hours), len(expected))

    def test_one_row_breaks_a_silence_and_only_visitor_hours_count(self):
        hours, night = list(GAP), list(FULL)
        hours[9], night[3] = 1, 100
        assert compared(delivery(3, {3: hours}), *BEFORE).silent == ()
        assert compared(delivery(3, {3: FULL}), delivery(1, {1: night, 2: night})).silent == ()

    @pytest.mark.parametrize(("rows", "n"), [(LEAST_HOUR_ROWS - 1, 0), (LEAST_HOUR_ROWS, 1)])
    def test_an_hour_with_few_rows_may_be_empty_by_chance(self, rows, n):
        usual = list(FULL)
        usual[9] = rows
        assert len(compared(delivery(3, {3: GAP}), delivery(1, {1: usual, 2: usual})).silent) == n

    @pytest.mark.parametrize(
        ("before", "n"),
        [([FULL, FULL, FULL], 1), ([GAP, FULL, FULL], 1), ([GAP, GAP, FULL], 0), ([FULL, GAP], 0), ([FULL], 0)],
        ids=["of three all", "of three two", "of three one", "of two days both must have rows", "one day alone"],
    )  # fmt: skip
    def test_it_is_the_median_that_is_usual(self, before, n):
        files = [delivery(at, {at: hours}) for at, hours in enumerate(before, start=1)]
        assert len(compared(delivery(4, {4: GAP}), *files).silent) == n


OUTSIDE = (
    "No rows were counted, because the dates in the file are outside the study period. The file covers {}, and the "
    "study covers Wed 1 May 2024 to Tue 14 May 2024 (14 days). Check that this is the right study and that the "
    "profile has the right date format."
)


class TestWords:
    @pytest.mark.parametrize(
        ("now", "before", "checks", "expected"),
        [({2: day_hours(10)}, {1: FULL}, {"day_subscribers": {"2": 300}}, [
             "Thu 2 May 2024, Rows, including duplicates: 40, usually 400 (1 earlier day). Is part of the file missing?",
             "Thu 2 May 2024, Subscribers: 300, usually 90 (1 earlier day). Was some data sent twice?",
         ]),
         ({3: day_hours(100, silent=(9, 10))}, {1: FULL, 2: FULL}, {}, [
             "Fri 3 May 2024: no events between 09:00 and 11:00; those hours usually have 200 rows. Was there an outage?",
         ]),
         ({2: FULL}, {1: FULL}, {"rejected": 100, "empty": {"age": 500}}, [
             "Rejected rows: 20.0% in this file, usually 0.0% (1 earlier file).",
             "Empty values in age: 100.0% in this file, usually 0.0% (1 earlier file).",
         ]),
         ({2: FULL}, {1: FULL}, {}, [])],
    )  # fmt: skip
    def test_warnings_name_the_day_the_figure_and_what_is_usual(self, now, before, checks, expected):
        earlier = delivery(1, before, day_subscribers={"1": 90}, empty={"age": 0})
        found = compared(delivery(2, now, **checks), earlier)
        assert list(map(plain, words.warnings(found, calendar()))) == expected

    @pytest.mark.parametrize(
        ("kind", "rows", "ignored", "checks", "expected"),
        [("extract", 0, {"outside_period": 8}, {"first_event": 1717200000, "last_event": 1717286400},
          OUTSIDE.format("Sat 1 Jun 2024 to Sun 2 Jun 2024 (2 days)")),
         ("extract", 0, {"outside_period": 8}, {"first_event": 1709629200, "last_event": 1709629200},  # 5 March
          OUTSIDE.format("Tue 5 Mar 2024")
          + " Day and month are probably swapped: in the other order, dates of the file are in the study."),
         # 5 to 30 June and 2 to 5 June: of each only one end would be in the study
         ("extract", 0, {"outside_period": 8}, {"first_event": 1717578000, "last_event": 1719738000},
          OUTSIDE.format("Wed 5 Jun 2024 to Sun 30 Jun 2024 (26 days)")),
         ("extract", 0, {"outside_period": 8}, {"first_event": 1717318800, "last_event": 1717578000},
          OUTSIDE.format("Sun 2 Jun 2024 to Wed 5 Jun 2024 (4 days)")),
         ("extract", 0, {"outside_period": 6, "outside_area": 3}, {},
          "All 9 rows were ignored or rejected. Reasons: Event outside the study period (6); Cell "
          "outside the area (3)."),
         ("extract", 1, {"outside_period": 8}, {}, ""),
         ("subscribers", 9, {}, {"duplicates": 2, "duplicates_of": 9},
          ("2 of 9 rows are for a subscriber who already has a row, and only the first row for each "
"subscriber counts. A subscriber file must have one row per subscriber. If this file contains events, choose an "
"events profile.")),
         ("subscribers", 9, {}, {"duplicates": 1, "duplicates_of": 9}, ""),
         ("extract", 9, {}, {"duplicates": 9, "duplicates_of": 9}, "")],
    )  # fmt: skip
    def test_a_file_that_is_hardly_what_was_meant_says_so(self, kind, rows, ignored, checks, expected):
        batch = Batch(
            kind=kind, state=Batch.State.DONE, rows_read=9, rows_accepted=rows, rows_ignored=ignored
        )
        assert plain(" ".join(words.misfits(batch, Facts.of(checks), calendar()))) == expected

    def test_a_median_says_what_it_is_taken_of(self):
        assert [words.basis_words(basis, n) for n in (1, 3) for basis in ("weekday", "days", "files")] == [
            "1 earlier day that falls on the same weekday", "1 earlier day", "1 earlier file",
            "median of 3 earlier days that fall on the same weekday", "median of 3 earlier days",
            "median of 3 earlier files",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("part", "of", "text"),
        [(10, 40312, "10 of 40,312 (under 0.1%)"), (0, 40312, "0 of 40,312 (0.0%)"),
         (1, 1000, "1 of 1,000 (0.1%)"), (3, 4, "3 of 4 (75.0%)"), (0, 0, "0 of 0")],
    )  # fmt: skip
    def test_a_part_never_stands_without_the_whole(self, part, of, text):
        assert plain(words.part_of_all(Share(part=part, of=of))) == text

    def test_a_moment_says_its_offset(self):
        when = datetime.fromtimestamp(1714543200, ZoneInfo("Europe/Paris"))
        assert words.moment(when) == "Wed 1 May 2024, 08:00:00 (UTC+02:00)"

    def test_what_is_not_listed_is_counted(self):
        facts = Facts.of({"unmatched_more": 1, "unmatched_hidden": 1234})
        more, hidden = map(plain, words.unmatched_notes(facts))
        assert more == "For 1 of the rows outside the area, the network cell is not listed."
        assert hidden.startswith("In 1,234 rows, the text in the cell column differs so much")
        assert list(words.unmatched_notes(Facts.of({}))) == []
