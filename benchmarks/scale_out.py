"""Workers on their own hosts: how much faster two are than one, and what each batch costs everyone.

    python -m benchmarks.scale_out [--workers 1 2] [--json benchmarks/capacity_measured.json]

Each worker has one process, one core (taskset) and a network namespace with its own address on a bridge made
for this run. They share two PostgreSQL servers that wait for the disk, Redis, an S3 protocol server (moto) in
its own namespace, and a folder for keys. Uploads are staged in the bucket. Needs root, and leaves no
network behind. All servers run on the same cores as the workers: on two cores two workers cannot be twice as
fast, so the processor time of each is given with the speed.

Every batch is compared with what its file holds. Ends with 1 if one differs.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

import boto3
import psycopg
import redis

from benchmarks.ingest import check
from benchmarks.ingest_files import write_csv
from benchmarks.ingest_study import write_study
from benchmarks.installation import Installation, Worker
from benchmarks.memory import Watch, processor_seconds, watched
from benchmarks.scale_network import Network
from scripts import services

BUCKET: Final = "staging"
REGION: Final = "eu-west-3"
SECRET: Final = "not-a-secret-anywhere"  # noqa: S105 - of a server that lives for minutes
STORE: Final = 0  # the host of the S3 server; workers come after it
WARM: Final = (400_000, 20)
# Rows of a file, and how many of them are of one subscriber in the week. The model of capacity is fitted to
# the first three: the smallest, the one with most subscribers for its rows, and the largest.
FILES: Final = (
    (500_000, 20), (1_000_000, 5), (6_000_000, 12), (2_000_000, 20), (1_500_000, 10), (4_000_000, 10),
)  # fmt: skip
STATISTICS_S: Final = 11.0  # a resting connection of PostgreSQL tells what it did after ten seconds
REST_S: Final = 33.0
SAMPLE_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Cost of one batch. Bytes of workers and store are of their cables, with the headers of packets.

    batch_s : from its first task to its end
    worker_cpu_s, database_cpu_s : processor time of all workers, and of both database servers
    wal_bytes : write-ahead log of both databases; stored_bytes : how much the vault's grew
    chunks : that the product has cut the file into
    messages : that were put into the broker's queues
    Processor time, log, commits, rows and messages are without those of workers that rest as long.
    peak_mb : proportional set size of one worker with its process
    """

    workers: int
    rows: int
    subscribers: int
    subscriber_days: int
    shards: int
    chunks: int
    file_bytes: int
    batch_s: float
    worker_cpu_s: float
    database_cpu_s: float
    worker_received: list[int]
    worker_sent: list[int]
    store_received: int
    store_sent: int
    wal_bytes: int
    commits: int
    rows_written: int
    stored_bytes: int
    messages: int
    peak_mb: float

    @property
    def speed(self) -> float:
        """Rows a second."""
        return self.rows / self.batch_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counters:
    at_s: float  # of a clock
    wal_bytes: float
    commits: float
    rows_written: float
    stored_bytes: float
    messages: float
    worker_cpu_s: float
    database_cpu_s: float

    def since(self, then: "_Counters") -> "_Counters":
        """Return the difference of two readings."""
        return self._with(then, 1.0)

    def without(self, rest: "_Counters") -> "_Counters":
        """Without what workers that rest cost in the same time."""
        return self._with(rest, self.at_s / rest.at_s)

    def _with(self, other: "_Counters", share: float) -> "_Counters":
        return _Counters(
            **{
                each.name: getattr(self, each.name) - share * getattr(other, each.name)
                for each in fields(_Counters)
            }
        )


class Cluster:
    """An installation whose workers are hosts of `network`."""

    def __init__(self, folder: Path, network: Network, *, workers: int) -> None:
        self._folder = folder
        self.network = network
        store = (network.addresses[STORE], services.free_port())
        shared = {
            "MOBILITY_KEYSTORE_DIR": str(folder / "keys"),
            "MOBILITY_LEDGER_KEY_FILE": str(folder / "data" / "ledger_key.pem"),
            "MOBILITY_STAGING_S3_BUCKET": BUCKET,
            "MOBILITY_STAGING_S3_ENDPOINT_URL": f"http://{store[0]}:{store[1]}",
            "MOBILITY_STAGING_S3_REGION": REGION,
            "MOBILITY_STAGING_S3_ACCESS_KEY": "scale",
            "MOBILITY_STAGING_S3_SECRET_KEY": SECRET,
        }
        self.store = store_server(network, folder=folder, address=store)
        self.installation = Installation(
            folder, is_postgres=True, workers=0, environment=shared,
            host=network.gateway, network=network.network,
        )  # fmt: skip
        self.installation.workers = [self._worker(host) for host in range(1, workers + 1)]
        self._store_url = shared["MOBILITY_STAGING_S3_ENDPOINT_URL"]
        self._n_studies = 0
        self._rest: _Counters | None = None

    def _worker(self, host: int) -> Worker:
        return Worker(
            host,
            processes=1,
            folder=self._folder,
            runs_in=[*self.network.runs_in(host), *one_core(host)],
            environment=self.installation.environment
            | {"MOBILITY_DATA_DIR": str(self._folder / f"host{host}")},
        )

    @contextmanager
    def running(self) -> "Iterator[Cluster]":
        """Everything serves inside this block."""
        with services.running(self.store):
            client = boto3.client(
                "s3", endpoint_url=self._store_url, region_name=REGION,
                aws_access_key_id="scale", aws_secret_access_key=SECRET,
            )  # fmt: skip
            client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
            with self.installation:
                yield self

    def measure(self, *, rows: int, rows_per_subscriber: int) -> Measured:
        """Take a file in, into its own study.

        Raises
        ------
        SystemExit : the batch does not hold what the file holds
        """
        path = self._folder / "extract.csv"
        truth = write_csv(path, rows=rows, rows_per_subscriber=rows_per_subscriber)
        self._n_studies += 1
        slug, subscribers = f"scale-{self._n_studies}", rows // rows_per_subscriber
        study = write_study(self._folder / "studies", slug=slug, subscribers=subscribers)
        self.installation.manage("create_study", str(study))
        rest = self._rest = self._rest or self._resting()
        before, cables = self._counters(), self._traffic()
        with watched(Watch([self.installation.workers[0].pid]), every_s=SAMPLE_S) as peak:
            batch = self.installation.manage("ingest", slug, str(path))
        after_cables = self._traffic()
        time.sleep(STATISTICS_S)
        cost = self._counters().since(before).without(rest)
        check(batch, truth)
        store, *hosts = (now.since(then) for now, then in zip(after_cables, cables, strict=True))
        return Measured(
            workers=len(hosts), rows=rows, subscribers=truth.subscribers, subscriber_days=sum(truth.visitors),
            shards=self._shards(slug), chunks=self._chunks(slug),
            file_bytes=path.stat().st_size, batch_s=batch["seconds"],
            worker_cpu_s=cost.worker_cpu_s, database_cpu_s=cost.database_cpu_s,
            worker_received=[host.received for host in hosts], worker_sent=[host.sent for host in hosts],
            store_received=store.received, store_sent=store.sent,
            wal_bytes=round(cost.wal_bytes), commits=round(cost.commits),
            rows_written=round(cost.rows_written), stored_bytes=round(cost.stored_bytes),
            messages=round(cost.messages), peak_mb=peak.highest / 1e6,
        )  # fmt: skip

    def _resting(self) -> _Counters:
        """Measure the cost of idle workers: signs of life, sweeps, looks for alerts."""
        time.sleep(STATISTICS_S)
        before = self._counters()
        time.sleep(REST_S)
        return self._counters().since(before)

    def _traffic(self) -> list[Any]:
        return [
            self.network.traffic(host) for host in range(STORE, STORE + 1 + len(self.installation.workers))
        ]

    def _counters(self) -> _Counters:
        rows = [self._of_database(name) for name in ("DATABASE_URL", "VAULT_DATABASE_URL")]
        with redis.Redis.from_url(self.installation.environment["REDIS_URL"]) as broker:
            said = broker.info("commandstats")
        workers = Watch([worker.pid for worker in self.installation.workers])
        databases = Watch([server.pid for server in self.installation.postgres.values()])
        return _Counters(
            at_s=time.monotonic(),
            wal_bytes=sum(row[0] for row in rows),
            commits=sum(row[1] for row in rows),
            rows_written=sum(row[2] for row in rows),
            stored_bytes=rows[1][3],
            messages=int(said.get("cmdstat_lpush", {}).get("calls", 0)),
            worker_cpu_s=processor_seconds(workers.processes()),
            database_cpu_s=processor_seconds(databases.processes()),
        )

    def _of_database(self, variable: str) -> tuple[int, ...]:
        """Bytes of the log so far, commits, rows written, size of the database."""
        with psycopg.connect(self.installation.environment[variable], autocommit=True) as connection:
            found = connection.execute(
                "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, xact_commit, "
                "tup_inserted + tup_updated + tup_deleted, pg_database_size(datname) "
                "FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        return tuple(map(int, found or ()))

    def _shards(self, slug: str) -> int:
        return self._number("SELECT n_shards FROM mobility_vaultstudy WHERE slug = %s", slug)

    def _chunks(self, slug: str) -> int:
        return self._number(
            "SELECT count(*) FROM mobility_chunk JOIN mobility_batch AS batch ON batch.id = batch_id "
            "JOIN mobility_vaultstudy AS study ON study.id = study_id WHERE slug = %s",
            slug,
        )

    def _number(self, query: str, slug: str) -> int:
        with psycopg.connect(self.installation.environment["VAULT_DATABASE_URL"]) as connection:
            found = connection.execute(query, [slug]).fetchone()
        return int(found[0]) if found else 0


def one_core(host: int) -> Sequence[str]:
    """Words before a command that runs on one core; the first worker has the first one."""
    cores = sorted(os.sched_getaffinity(0))
    return ("taskset", "-c", str(cores[(host - 1) % len(cores)]))


def store_server(network: Network, *, folder: Path, address: tuple[str, int]) -> services.Server:
    """An S3 protocol server on its own host; it keeps objects in memory."""

    def answers() -> bool:
        connection = HTTPConnection(*address, timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    host, port = address
    command = [
        *network.runs_in(STORE), sys.executable, "-m", "moto.server", "-H", host, "-p", str(port),
    ]  # fmt: skip
    place = folder / "store"
    place.mkdir(parents=True)
    return services.Server(command, folder=place, answers=answers)


def table(measured: Sequence[Measured]) -> str:
    """A line for each batch."""
    names = (
        "workers", "rows", "subscribers", "batch s", "M rows/s", "speed-up", "worker CPU us a row",
        "database CPU s", "to each worker MB", "from each worker MB", "from the store MB", "WAL MB",
        "commits", "rows written", "messages", "peak MB",
    )  # fmt: skip
    alone = {(each.rows, each.subscribers): each.batch_s for each in measured if each.workers == 1}
    lines = [f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
    for each in measured:
        first = alone.get((each.rows, each.subscribers))
        cells = [
            str(each.workers), f"{each.rows:,}", f"{each.subscribers:,}", f"{each.batch_s:.1f}",
            f"{each.speed / 1e6:.2f}", f"{first / each.batch_s:.2f}" if first else "",
            f"{1e6 * each.worker_cpu_s / each.rows:.2f}", f"{each.database_cpu_s:.1f}",
            ", ".join(f"{count / 1e6:,.0f}" for count in each.worker_received),
            ", ".join(f"{count / 1e6:,.0f}" for count in each.worker_sent),
            f"{each.store_sent / 1e6:,.0f}", f"{each.wal_bytes / 1e6:.1f}", f"{each.commits:,}",
            f"{each.rows_written:,}", f"{each.messages:,}", f"{each.peak_mb:,.0f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure(folder: Path, *, workers: Sequence[int], files: Sequence[tuple[int, int]]) -> Iterator[Measured]:
    """Every file with every number of workers, after a small one that loads the kernels."""
    for count in workers:
        place = folder / f"{count}-workers"
        place.mkdir()
        place.chmod(0o755)
        with (
            Network(STORE + 1 + count) as network,
            Cluster(place, network, workers=count).running() as cluster,
        ):
            for rows, rows_per_subscriber in (WARM, *files):
                say(f"{count} workers, {rows:,} rows, {rows_per_subscriber} of each subscriber")
                found = cluster.measure(rows=rows, rows_per_subscriber=rows_per_subscriber)
                if (rows, rows_per_subscriber) != WARM:
                    yield found


def say(text: str) -> None:
    """Progress for anyone who waits."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _file(text: str) -> tuple[int, int]:
    rows, _, each = text.partition(":")
    return int(rows), int(each or WARM[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--files", type=_file, nargs="+", default=FILES, metavar="ROWS:ROWS_OF_A_SUBSCRIBER")
    parser.add_argument("--json", type=Path, help="a file for the result, beside the output")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mobility-scale-")))
        folder.chmod(0o755)
        found, document = [], "[]"
        for each in measure(folder, workers=options.workers, files=options.files):
            found.append(each)
            document = json.dumps([asdict(each) for each in found], indent=1)
            if options.json:  # each time: anyone who ends the run early keeps what was measured
                options.json.write_text(document + "\n")
    sys.stdout.write(f"{table(found)}\n\n```json\n{document}\n```\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
