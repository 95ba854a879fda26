"""The way of a row from the reader to the tally: which modules it passes, and how often it turns back.

    python -m benchmarks.row_way FOLDER

Counted are functions of mobility that take or give rows, in the order of their first call. A stop is a run of
them in one module; at a module where it has been before, the row turns back. Where sealed bytes are stored is
no part of it.
"""

import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

from benchmarks.installation import ROOT

PRODUCT: Final = (f"{ROOT}/mobility/", f"{ROOT}/ldp/")
FIRST, LAST = "read_csv", "tally_"
STORED: Final = ("mobility.batches.stag", "mobility.batches.storages", "mobility.vault.sealing")
MANY: Final = 8  # values are rows, and not a key or a setting
SETUP: Final = {"OpenStudy", "StudyDefinition", "Profile", "StudyClock", "Layout", "Reading", "RowCounts"}
KEYS: Final = {"key", "pseudonym_key"}


@dataclasses.dataclass
class Call:
    """The first call of a function."""

    module: str
    name: str
    has_rows: bool
    frame: FrameType


class Trace:
    """First calls of functions of the product, by a profiler of this thread."""

    def __init__(self) -> None:
        self.calls: dict[Any, Call] = {}

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PRODUCT) or code.co_name.startswith("<"):
            return
        if event == "call" and code not in self.calls:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            module = ".".join(Path(code.co_filename).relative_to(ROOT).with_suffix("").parts)
            is_kernel = hasattr(getattr(sys.modules.get(module), code.co_name, None), "py_func")
            has_rows = is_kernel or any(has_many(frame.f_locals.get(name)) for name in {*names} - KEYS)
            self.calls[code] = Call(module, code.co_qualname, has_rows, frame)
        elif event == "return" and code in self.calls:
            call = self.calls[code]
            call.has_rows |= call.frame is frame and has_many(result)

    def stops(self) -> Iterator[tuple[str, list[str]]]:
        """Module and functions of each stop."""
        calls = list(self.calls.values())
        tallies = [place for place, call in enumerate(calls) if call.name.startswith(LAST)]
        way = calls[[call.name for call in calls].index(FIRST) : tallies[-1] + 1]
        mine = [call for call in way if call.has_rows and call.module.startswith("mobility.")]
        kept = [call for call in mine if not call.module.startswith(STORED)]
        for module, run in groupby(kept, key=lambda call: call.module):
            yield module, [call.name for call in run]


def has_many(value: object, depth: int = 3) -> bool:
    """Return whether a value holds rows, or bytes of them."""
    if isinstance(value, np.ndarray):
        return value.size >= MANY
    if isinstance(value, bytes | bytearray | memoryview):
        return len(value) >= 25 * MANY
    if dataclasses.is_dataclass(value) and type(value).__name__ not in SETUP:
        value = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    return depth > 0 and isinstance(value, list | tuple) and any(has_many(v, depth - 1) for v in value[:MANY])


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ |= {"DJANGO_SETTINGS_MODULE": "mobility.settings", "MOBILITY_DATA_DIR": str(folder / "data")}
    os.environ["MOBILITY_READ_THREADS"] = "1"  # a profiler sees its own thread
    import django
    from django.core.management import call_command

    django.setup()
    from benchmarks.ingest_stages import Timers, run_batch

    for alias in ("default", "vault"):
        call_command("migrate", database=alias, verbosity=0)
    run_batch(folder, rows=2_000, timers=Timers())  # loads the kernels
    trace = Trace()
    sys.setprofile(trace)
    run_batch(folder, rows=3_000, timers=Timers())
    sys.setprofile(None)
    seen: set[str] = set()
    stops = list(trace.stops())
    for module, names in stops:
        sys.stdout.write(f"{'back' if module in seen else '':5}{module}: {', '.join(names)}\n")
        seen.add(module)
    sys.stdout.write(
        f"{len(stops)} stops in {len(seen)} modules: turns back {len(stops) - len(seen)} times\n"
    )


if __name__ == "__main__":
    main()
