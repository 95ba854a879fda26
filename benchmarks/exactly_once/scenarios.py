"""Orders in which the same week arrives: in order, in any order, twice, with days in common, or in parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.exactly_once.chance import Chance
from benchmarks.ingest_files import days_of
from benchmarks.ingest_study import COLUMNS

PARTS: Final = 3  # of a file that is split


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file to send."""

    path: Path
    more_to_come: bool = False


class Week:
    """The rows of a week by day, and files made of them."""

    def __init__(self, extract: Path, folder: Path) -> None:
        self._days = list(days_of(extract).values())
        self._folder = folder

    def file(self, name: str, *, days: range) -> Upload:
        """A file of some days, from 0."""
        return self._written(name, [line for day in days for line in self._days[day]])

    def parts(self, name: str, *, days: range, chance: Chance) -> list[Upload]:
        """Split the rows into several files, each with rows of every day; all but the last say so."""
        rows: list[list[str]] = [[] for _ in range(PARTS)]
        for day in days:
            for line in self._days[day]:
                rows[chance.below(PARTS)].append(line)
        last = PARTS - 1
        return [
            self._written(f"{name}-{part}", lines, more_to_come=part != last)
            for part, lines in enumerate(rows)
        ]

    def _written(self, name: str, lines: Sequence[str], *, more_to_come: bool = False) -> Upload:
        path = self._folder / f"{name}.csv"
        path.write_text(",".join(COLUMNS) + "\n" + "".join(lines))
        return Upload(path=path, more_to_come=more_to_come)


Scenario = Callable[[Week, Chance], list[Upload]]
THIRDS: Final = (range(2), range(2, 4), range(4, 7))
OVERLAPPING: Final = (range(3), range(2, 5), range(4, 7))


def in_order(week: Week, _: Chance) -> list[Upload]:
    """Three files, one after the other."""
    return [week.file(f"file-{number}", days=days) for number, days in enumerate(THIRDS)]


def reordered(week: Week, chance: Chance) -> list[Upload]:
    """Shuffle the files."""
    return chance.shuffled(in_order(week, chance))


def duplicate(week: Week, chance: Chance) -> list[Upload]:
    """Send one of the files once more at some time."""
    uploads = in_order(week, chance)
    again = chance.below(len(uploads))
    uploads.insert(again + 1 + chance.below(len(uploads) - again), uploads[again])
    return uploads


def overlapping(week: Week, chance: Chance) -> list[Upload]:
    """Files with whole days in common, in any order."""
    uploads = [week.file(f"overlap-{number}", days=days) for number, days in enumerate(OVERLAPPING)]
    return chance.shuffled(uploads)


def split(week: Week, chance: Chance) -> list[Upload]:
    """One file comes in parts: its days stay open until the last one."""
    uploads: list[Upload] = []
    in_parts = chance.below(len(THIRDS))
    for number, days in enumerate(THIRDS):
        if number == in_parts:
            uploads += week.parts(f"part-{number}", days=days, chance=chance)
        else:
            uploads.append(week.file(f"file-{number}", days=days))
    return uploads


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "in order": in_order,
    "reordered": reordered,
    "duplicate": duplicate,
    "overlapping": overlapping,
    "split": split,
}
