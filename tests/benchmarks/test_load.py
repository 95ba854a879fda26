"""Load, hosts and capacity: what counts as an answer, bytes that are counted, costs that are foretold."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from email.message import Message
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User

from benchmarks import capacity, load_report
from benchmarks.capacity import Cost, Work
from benchmarks.load_feeds import Sent
from benchmarks.load_readers import HABITS, NO_PAGES, Asked, what_is_wrong
from benchmarks.load_report import Outage, Run
from benchmarks.scale_network import Network
from mobility.batches.reading import chunk_bytes
from mobility.extracts.readers.chunks import plan_chunks
from mobility.plans.studies import shard_count

OUTAGE = Outage(what="postgres", stopped=100.0, started=103.0, settled=105.0)


def answer(status, *, encoding=""):
    headers = Message()
    if encoding:
        headers["Content-Encoding"] = encoding
    return SimpleNamespace(status=status, headers=headers)


@pytest.mark.django_db
def test_a_page_is_that_of_a_signed_in_person_and_files_and_the_api_are_told_by_their_status_alone(client):
    form = client.get("/sign-in/").content
    client.force_login(User.objects.create_user("analyst"))
    page = client.get("/account/").content
    cut_off = gzip.compress(page)[:-20]
    assert what_is_wrong("report", answer(200), page) == ""
    assert what_is_wrong("report", answer(200, encoding="gzip"), gzip.compress(page)) == ""
    assert what_is_wrong("report", answer(200), form) == "is not the page of a signed-in person"
    assert what_is_wrong("report", answer(200, encoding="gzip"), cut_off) == "is cut off or garbled"
    assert {what_is_wrong(page, answer(302), b"") for page in HABITS} == {"answered 302"}
    assert sorted(set(HABITS) - NO_PAGES) == [
        "compare", "days", "home", "movement", "report", "report, map", "statement", "studies", "study",
    ]  # fmt: skip
    assert what_is_wrong("file (CSV)", answer(200), b"day,count") == ""
    assert what_is_wrong("API, estimates", answer(500), b"") == "answered 500"
    assert sum(HABITS.values()) == 100


def asked(at, *, status=200, seconds=0.1, retry_after=False):
    error = "" if status < 400 and status else f"answered {status}"
    return Asked(page="home", at=at, seconds=seconds, status=status, error=error, retry_after=retry_after)


def run(*requests, outages=(OUTAGE,), state="done"):
    batch = {"state": state, "failure": ""}
    return Run(
        warm_at=10.0, asked=[asked(20), asked(21), *requests],
        sent=[Sent(study="load-1", began=11, received=12, ended=200, batch=batch)],
        outages=outages, used=[], rows_per_file=1000, analysts=2, think_s=1, wrong_totals=[],
    )  # fmt: skip


def test_only_a_refusal_that_says_when_to_come_again_is_no_error_while_a_server_is_away():
    assert load_report.missed(run()) == []
    refused = run(asked(101, status=503, retry_after=True))
    assert load_report.missed(refused) == []
    assert load_report.as_json(refused)["outages"][0] | {"away_s": 0} == {
        "what": "postgres", "away_s": 0, "requests": 1, "answered": 0, "refused": 1, "wrong": 0,
        "longest_s": 0.1,
    }  # fmt: skip
    wrong = [
        asked(50, status=503, retry_after=True),  # no outage
        asked(101, status=503),  # does not say when to come again
        asked(101, status=500),
        asked(101, status=0),  # no answer
        asked(5, status=500),  # before the server is warm
    ]
    assert load_report.errors(run(*wrong)) == wrong
    assert load_report.missed(run(*wrong))[0].startswith("5 of 7 requests went wrong")


def test_a_request_that_waits_for_a_server_is_one_of_its_outage_but_not_for_ever():
    waiting = asked(98, seconds=4.0)
    assert load_report.during(waiting, [OUTAGE]) is OUTAGE
    assert load_report.missed(run(waiting)) == []
    long = [asked(98, seconds=31.0), asked(99, seconds=29.0)]
    assert load_report.errors(run(*long)) == long[:1]
    assert "home took 31 s" in load_report.missed(run(*long))[0]
    facts = load_report.as_json(run(*long))["outages"][0]
    assert (facts["answered"], facts["wrong"], facts["longest_s"]) == (1, 1, 31.0)


def test_a_few_requests_have_no_percentile_and_slow_pages_and_failed_batches_miss_the_goal():
    few = load_report.speeds([asked(30 + at, seconds=0.6) for at in range(19)])
    assert [(each.page, each.p95) for each in few] == [("all", pytest.approx(0.6)), ("home", None)]
    enough = load_report.speeds([asked(30 + at, seconds=0.6) for at in range(20)])
    assert [each.p95 for each in enough] == [pytest.approx(0.6)] * 2
    assert "| home | 2 | 100 | - | - | 100 |" in load_report.tables(run())
    slow = load_report.missed(run(*[asked(30, seconds=0.6) for _ in range(20)]))
    assert [text.partition(":")[0] for text in slow] == ["all", "home"]
    assert load_report.missed(run(state="failed")) == ["load-1: the batch is failed: "]


def test_each_part_of_a_run_has_its_own_times():
    """A file came in from second 11 to 12, its batch ended at 200, or never."""

    def phases(found):
        return [(each.page, each.count) for each in load_report.phases(found)]

    requests = [asked(at, seconds=s) for at, s in ((11.5, 0.4), (11.6, 0.4), (201, 0.2), (202, 0.2))]
    whole = run(*requests, outages=())
    assert phases(whole) == [("files come in", 2), ("batches are at work", 2), ("batches have ended", 2)]
    assert [each.longest for each in load_report.phases(whole)] == [0.4, 0.1, 0.2]
    sent, late = Sent(study="load-1", began=11, received=12), run(asked(201), asked(202), outages=())
    unfinished = replace(late, sent=[sent])
    assert phases(unfinished) == [("batches are at work", 4)]
    assert phases(replace(unfinished, sent=[Sent(study="load-1", began=11)])) == [("files come in", 4)]


N_BYTES = 200_000
RECEIVE = "import socket; s = socket.create_server(('', 7000)); print('ready', flush=True); " + (
    "c = s.accept()[0]; print(sum(map(len, iter(lambda: c.recv(65536), b''))))"
)
SEND = f"import socket, sys; socket.create_connection((sys.argv[1], 7000)).sendall(bytes({N_BYTES}))"


def names():
    commands = (["netns", "list"], ["-o", "link"])
    listed = (subprocess.run(["ip", *words], check=True, capture_output=True) for words in commands)
    return b"".join(each.stdout for each in listed).decode()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="namespaces need root and iproute2")
def test_hosts_talk_to_each_other_and_their_bytes_are_counted_until_whatever_ends_the_run():
    with pytest.raises(KeyboardInterrupt), Network(2) as network:
        tag = network.runs_in(0)[-1].rpartition("-")[0]
        before = network.traffic(0)
        with subprocess.Popen(
            [*network.runs_in(1), sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True
        ) as receiver:
            assert receiver.stdout.readline() == "ready\n"
            sender = [*network.runs_in(0), sys.executable, "-c", SEND, network.addresses[1]]
            subprocess.run(sender, check=True)
            assert receiver.stdout.readline() == f"{N_BYTES}\n"
        passed = network.traffic(0).since(before)
        assert N_BYTES < passed.sent < 1.1 * N_BYTES
        assert passed.received < 0.1 * N_BYTES
        assert tag in names()
        raise KeyboardInterrupt
    assert tag not in names()


ROW_S, PERSON_S, TASK_S = 1e-6, 4e-6, 0.05
WAL_PERSON, WAL_TASK = 30.0, 20_000.0


def batch(*, workers=1, rows, rows_per_subscriber):
    subscribers = rows // rows_per_subscriber
    shards = capacity.shards_of(subscribers)
    work = Work(workers=workers, rows=rows, file_bytes=rows * 74, subscribers=subscribers, shards=shards)
    cpu_s = ROW_S * rows + PERSON_S * subscribers + TASK_S * work.tasks
    return {
        "workers": workers, "rows": rows, "file_bytes": rows * 74, "subscribers": subscribers,
        "shards": shards, "worker_cpu_s": cpu_s,
        "database_cpu_s": TASK_S * work.tasks, "batch_s": 2 + 1.5 * cpu_s / workers,
        "wal_bytes": WAL_PERSON * subscribers + WAL_TASK * work.tasks, "stored_bytes": 12 * subscribers,
        "commits": 9 * work.tasks, "messages": 2 * work.tasks, "peak_mb": 300.0,
        "worker_received": [rows * 100 // workers] * workers, "worker_sent": [rows * 20 // workers] * workers,
    }  # fmt: skip


BATCHES = [
    batch(rows=1_000_000, rows_per_subscriber=20),
    batch(rows=4_000_000, rows_per_subscriber=20),
    batch(rows=2_000_000, rows_per_subscriber=5),
    batch(rows=6_000_000, rows_per_subscriber=10),
    batch(rows=6_000_000, rows_per_subscriber=10, workers=2),
]


def test_a_model_finds_the_constants_of_costs_and_its_errors_are_of_batches_that_it_has_not_seen():
    model = capacity.fit(BATCHES)
    assert model.costs["worker_cpu_s"].per_row == pytest.approx(ROW_S, rel=1e-6)
    assert model.costs["worker_cpu_s"].per_task == pytest.approx(TASK_S, rel=1e-6)
    wal = Cost(per_subscriber=pytest.approx(WAL_PERSON), per_task=pytest.approx(WAL_TASK))
    assert model.costs["wal_bytes"] == wal
    assert (model.fixed_s, model.waiting) == (pytest.approx(2), pytest.approx(1.5))
    noisy = [each | {"wal_bytes": n} for each, n in zip(BATCHES, (9e6, 1e6, 5e6, 1e6, 1e6), strict=True)]
    for cost in capacity.fit(noisy).costs.values():
        assert min(cost.per_row, cost.per_subscriber, cost.per_task) >= 0
    with pytest.raises(ValueError, match="3 batches of one worker are needed, got 2"):
        capacity.fit([BATCHES[0], BATCHES[1], BATCHES[4]])
    slow = BATCHES[-1] | {"worker_cpu_s": 2 * BATCHES[-1]["worker_cpu_s"]}
    checked = capacity.errors(capacity.fit(BATCHES), [*BATCHES[:-1], slow])
    assert [work.workers for work, _ in checked] == [1, 2]
    assert max(abs(each) for each in checked[0][1].values()) < 1e-3
    assert checked[1][1]["worker_cpu_s"] == pytest.approx(-0.5)


def test_what_a_country_needs_is_the_sum_of_shards_chunks_and_tasks_as_in_the_product():
    country = {"subscribers": 100_000_000, "rows_per_subscriber": 15, "row_bytes": 74, "hours": 8}
    model = capacity.fit(BATCHES)
    day, cut = (capacity.needs(model, **country, files=files) for files in (1, 2))
    chunks = -(-1_500_000_000 * 74 // (64 << 20))
    assert (day.rows, day.shards, day.tasks) == (1_500_000_000, 1024, 1024 + chunks)
    cpu_s = ROW_S * 1.5e9 + PERSON_S * 1e8 + TASK_S * day.tasks
    assert day.cpu_hours == pytest.approx(cpu_s / 3600)
    assert day.cores == pytest.approx(cpu_s / 28_800 / capacity.BUSY)
    assert day.wal_bytes_per_s == pytest.approx((WAL_PERSON * 1e8 + WAL_TASK * day.tasks) / 28_800)
    assert cut.wal_bytes > 1.5 * day.wal_bytes  # each file brings every shard up to date
    files = Work(workers=1, rows=1, file_bytes=4 * 9_000_000, subscribers=1, shards=4, files=4)
    assert files.tasks == 4 * (2 + 4)  # each is cut separately
    for subscribers in (1, 99_000, 400_001, 6_400_000, 100_000_000):
        assert capacity.shards_of(subscribers) == shard_count(subscribers)
    for size in (1, 9 << 20, 36_991_808, 147_973_860, 444 << 20, 600_000_001, 111 * 10**9):
        plans = plan_chunks(io.BytesIO(b"a,b\n"), size=size, target_bytes=chunk_bytes(size))
        assert capacity.chunks_of(size) == len(plans), size
    measured = json.loads(capacity.MEASURED.read_text())
    assert measured
    for each in measured:
        assert Work.of(each).tasks == each["chunks"] + each["shards"]
