"""Recompute what the papers claim and write docs/reproduction.md with its charts.

Fixed keys: the same numbers, and the same bytes, on every run.

    python -m benchmarks.reproduce
    python -m benchmarks.reproduce --runs 4 --output /tmp/draft
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.reproduce import document, figures, gains, loloha, recognition, solutions, streams, windows
from benchmarks.reproduce.findings import Findings
from benchmarks.reproduce.runs import Floats

RUNS: Final = {"gain": 200, "window": 50, "solution": 60, "recognition": 20, "stream": 20, "loloha": 3}

Setting = TypeVar("Setting")


def main() -> int:
    """Simulate, draw and write; always returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs"), help="folder of reproduction.md")
    parser.add_argument("--runs", type=int, help="of each experiment; fewer are faster and less certain")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    n_runs = {name: options.runs or n for name, n in RUNS.items()}
    with ProcessPoolExecutor(options.processes) as pool:
        found = {
            f"{name}_runs": simulate(pool, module.errors, module.settings(), n_runs=n_runs[name], name=name)
            for name, module in (
                ("gain", gains),
                ("window", windows),
                ("solution", solutions),
                ("stream", streams),
                ("loloha", loloha),
            )
        }
        found["recognition_runs"] = simulate(
            pool,
            recognition.successes,
            recognition.settings(),
            n_runs=n_runs["recognition"],
            name="recognition",
        )
    write(Findings(**found), folder=options.output)
    return 0


def simulate(
    pool: ProcessPoolExecutor,
    errors: Callable[[Setting, int], Floats],
    settings: Sequence[Setting],
    *,
    n_runs: int,
    name: str,
) -> Mapping[Setting, Floats]:
    """Errors of all settings, in their order."""
    started = time.perf_counter()
    found = dict(zip(settings, pool.map(errors, settings, [n_runs] * len(settings)), strict=True))
    sys.stdout.write(
        f"{name}: {len(found)} settings, {n_runs} runs each, {time.perf_counter() - started:.0f} s\n"
    )
    sys.stdout.flush()
    return found


def write(found: Findings, *, folder: Path) -> None:
    """Charts, tables and text."""
    charts = folder / "reproduction"
    charts.mkdir(parents=True, exist_ok=True)
    figures.draw_gains(found.gain_runs, charts / "gains.svg")
    figures.draw_window_errors(found.window_runs, charts / "window-errors.svg")
    figures.draw_windows(found.window_runs, charts / "windows.svg")
    figures.draw_solutions(found.solution_runs, charts / "solutions.svg")
    for name, text in document.files(found).items():
        (charts / name).write_text(text, encoding="utf-8")
    (folder / "reproduction.md").write_text(document.render(found), encoding="utf-8")
    sys.stdout.write(f"wrote {folder / 'reproduction.md'}\n")


if __name__ == "__main__":
    sys.exit(main())
