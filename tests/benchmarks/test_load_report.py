"""What counts as an error of the load, and what as an answer while something is away."""

from dataclasses import replace

import pytest

from benchmarks import load_report
from benchmarks.load_feeds import Sent
from benchmarks.load_readers import HABITS, Asked
from benchmarks.load_report import Outage, Run

OUTAGE = Outage(what="postgres", stopped=100.0, started=103.0, settled=105.0)


def asked(at: float, *, status: int = 200, seconds: float = 0.1, retry_after: bool = False) -> Asked:
    error = "" if status < 400 and status else f"answered {status}"
    return Asked(page="home", at=at, seconds=seconds, status=status, error=error, retry_after=retry_after)


def run(*requests: Asked, outages: tuple[Outage, ...] = (OUTAGE,), state: str = "done") -> Run:
    batch = {"state": state, "failure": ""}
    return Run(
        warm_at=10.0,
        asked=[asked(20), asked(21), *requests],
        sent=[Sent(study="load-1", began=11, received=12, ended=200, batch=batch)],
        outages=outages,
        used=[],
        rows_per_file=1000,
        analysts=2,
        think_s=1,
        wrong_totals=[],
    )


def test_a_quiet_run_meets_its_goals() -> None:
    assert load_report.missed(run()) == []


def test_a_refusal_that_says_when_to_come_again_is_no_error_while_a_server_is_away() -> None:
    refused = asked(101, status=503, retry_after=True)
    assert load_report.missed(run(refused)) == []
    assert load_report.as_json(run(refused))["outages"][0] | {"away_s": 0} == {
        "what": "postgres", "away_s": 0, "requests": 1, "answered": 0, "refused": 1, "wrong": 0,
        "longest_s": 0.1,
    }  # fmt: skip


def test_everything_else_is_an_error() -> None:
    wrong = [
        asked(50, status=503, retry_after=True),  # nothing is away
        asked(101, status=503),  # does not say when to come again
        asked(101, status=500),
        asked(101, status=0),  # no answer
        asked(5, status=500),  # before the server is warm
    ]
    assert load_report.errors(run(*wrong)) == wrong
    assert load_report.missed(run(*wrong))[0].startswith("5 of 7 requests went wrong")


def test_a_request_that_waits_for_a_server_is_one_of_its_outage() -> None:
    waiting = asked(98, seconds=4.0)
    assert load_report.during(waiting, [OUTAGE]) is OUTAGE
    assert load_report.missed(run(waiting)) == []


def test_an_outage_is_no_excuse_to_wait_for_ever() -> None:
    waiting = [asked(98, seconds=31.0), asked(99, seconds=29.0)]
    assert load_report.errors(run(*waiting)) == waiting[:1]
    assert "home took 31 s" in load_report.missed(run(*waiting))[0]
    facts = load_report.as_json(run(*waiting))["outages"][0]
    assert (facts["answered"], facts["wrong"], facts["longest_s"]) == (1, 1, 31.0)


def test_a_few_requests_have_no_percentile_of_their_own() -> None:
    few = load_report.speeds([asked(30 + at, seconds=0.6) for at in range(19)])
    assert [(each.page, each.p95) for each in few] == [("all", pytest.approx(0.6)), ("home", None)]
    enough = load_report.speeds([asked(30 + at, seconds=0.6) for at in range(20)])
    assert [each.p95 for each in enough] == [pytest.approx(0.6)] * 2
    assert "| home | 2 | 100 | - | - | 100 |" in load_report.tables(run())


def test_slow_pages_and_batches_that_do_not_end_well_miss_the_goal() -> None:
    slow = load_report.missed(run(*[asked(30, seconds=0.6) for _ in range(20)]))
    assert [text.partition(":")[0] for text in slow] == ["all", "home"]
    assert load_report.missed(run(state="failed")) == ["load-1: the batch is failed: "]


def test_habits_are_shares_of_a_hundred() -> None:
    assert sum(HABITS.values()) == 100


def test_each_part_of_a_run_has_its_own_times() -> None:
    """A file came in from second 11 to 12, its batch ended at 200."""
    requests = [
        asked(at, seconds=seconds) for at, seconds in ((11.5, 0.4), (11.6, 0.4), (201, 0.2), (202, 0.2))
    ]
    found = load_report.phases(run(*requests, outages=()))
    assert [(each.page, each.count, each.longest) for each in found] == [
        ("files come in", 2, 0.4),
        ("batches are at work", 2, 0.1),
        ("batches have ended", 2, 0.2),
    ]


def test_what_never_comes_to_its_end_lasts_to_the_end_of_the_run() -> None:
    unfinished = replace(
        run(asked(201), asked(202), outages=()), sent=[Sent(study="load-1", began=11, received=12)]
    )
    assert [(each.page, each.count) for each in load_report.phases(unfinished)] == [
        ("batches are at work", 4)
    ]
    broken = replace(unfinished, sent=[Sent(study="load-1", began=11)])
    assert [(each.page, each.count) for each in load_report.phases(broken)] == [("files come in", 4)]
