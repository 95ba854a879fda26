"""Do batches take turns? A small file that is sent while a huge one is read, and two huge ones at once.

`python -m benchmarks.fairness FOLDER [--rows N] [--processes P] [--code CHECKOUT]` prints a JSON value: real
Redis, a real worker with P processes, files of N and of 20,000 rows. With --code an earlier release runs.
"""

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from benchmarks.ingest_files import write_csv
from benchmarks.ingest_study import write_study
from benchmarks.installation import ROOT, Installation

SMALL_ROWS: Final = 20_000
CHUNK_BYTES: Final = 4 << 20  # many chunks of little data
POLL_S: Final = 0.5
SUBSCRIBERS: Final = 100_000
FACTS: Final = """
import json
from mobility.models import Batch, Chunk
print(json.dumps({row.study.slug + "/" + row.filename: {
    "state": row.state, "rows": row.rows_read,
    "chunks": row.chunks.count(), "done": row.chunks.filter(is_done=True).count(),
    "wait_s": round((row.finished_at - row.created_at).total_seconds(), 1) if row.finished_at else None,
} for row in Batch.objects.select_related("study")}))
"""


def main() -> None:
    """Run both, and print what was found."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--code", type=Path, default=ROOT)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    files = {name: given.folder / f"{name}.csv" for name in ("huge", "small", "warm")}
    write_csv(files["huge"], rows=given.rows)
    for name in ("small", "warm"):
        write_csv(files[name], rows=SMALL_ROWS)
    environment = {"MOBILITY_CHUNK_BYTES": str(CHUNK_BYTES)}
    with Installation(
        given.folder / "run", processes=given.processes, environment=environment, code=given.code
    ) as site:
        for slug in ("warm", "a", "b", "c", "d"):
            study = write_study(given.folder / "studies", slug=slug, subscribers=SUBSCRIBERS)
            site.manage("create_study", str(study))
        site.manage("ingest", "warm", str(files["warm"]))
        found = {"small_after_huge": small_after_huge(site, files), "two_huge": two(site, files)}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


def small_after_huge(site: Installation, files: dict[str, Path]) -> dict[str, Any]:
    """Seconds of a small file that comes while a huge one of another study is read."""
    with site.command("ingest", "a", str(files["huge"])) as huge:
        while facts(site).get("a/huge.csv", {}).get("done", 0) < 2:
            time.sleep(POLL_S)
        site.manage("ingest", "b", str(files["small"]))
        when_small_ended = facts(site)["a/huge.csv"]
        huge.communicate()
    found = facts(site)
    return {
        "small_s": found["b/small.csv"]["wait_s"],
        "huge_s": found["a/huge.csv"]["wait_s"],
        "huge_chunks": found["a/huge.csv"]["chunks"],
        "huge_chunks_read_when_small_ended": when_small_ended["done"],
        "states": sorted({batch["state"] for batch in found.values()}),
    }


def two(site: Installation, files: dict[str, Path]) -> dict[str, Any]:
    """Two huge files of two studies, sent together: how far is each when the first one ends?"""
    commands = [site.command("ingest", slug, str(files["huge"])) for slug in ("c", "d")]
    seen: list[tuple[int, int]] = []
    while any(command.poll() is None for command in commands):
        found = facts(site)
        seen.append((found.get("c/huge.csv", {}).get("done", 0), found.get("d/huge.csv", {}).get("done", 0)))
        time.sleep(POLL_S)
    for command in commands:
        command.communicate()
    found = facts(site)
    return {
        "seconds": [found[f"{slug}/huge.csv"]["wait_s"] for slug in ("c", "d")],
        "chunks_read_of_both_over_time": seen[:: max(len(seen) // 8, 1)],
    }


def facts(site: Installation) -> dict[str, Any]:
    """Return the state of each batch in the vault."""
    found: dict[str, Any] = json.loads(site.run_text("shell", "--no-imports", "-c", FACTS))
    return found


if __name__ == "__main__":
    main()
