"""Random days and nights of some people as files, and what is true of them in plain Python."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

PARIS = ZoneInfo("Europe/Paris")
FIRST_DAY = date(2017, 3, 25)  # the clocks go forward in the first night
DAYS = 4
ZONE_OF = {"cell-9": "South", "cell-8": "North", "cell-7": "South", "cell-6": None}
CELLS = list(ZONE_OF)  # in the registry's order, which decides ties
MIN_STAY = timedelta(minutes=60)
QUARTER_S = 900
NIGHT_FROM, NIGHT_TO = 22, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    who: str
    at: datetime  # UTC
    cell: str
    gender: str = "F"

    @property
    def local(self) -> datetime:
        return self.at.astimezone(PARIS)

    def text(self) -> str:
        return f"{self.who},{self.at:%Y-%m-%dT%H:%M:%S}Z,{self.cell},{self.gender}\n"


def some_rows(*, seed: int, people: int) -> list[Row]:
    """Rows from the date before the study to the second one after it; some cells are not in the area."""
    rng = random.Random(seed)
    start = datetime.combine(FIRST_DAY - timedelta(days=1), datetime.min.time(), UTC)
    rows = []
    for person in range(people):
        for day in range(DAYS + 3):
            for _ in range(rng.choice([0, 2, 4, 8])):
                # Few minutes, so that seconds and quarter-hours are shared.
                at = start + timedelta(days=day, seconds=rng.randrange(288) * 300 + rng.choice([0, 1, 299]))
                rows.append(Row(who=f"33{person:04d}", at=at, cell=rng.choice([*CELLS, *CELLS, "zz"])))
    return rows


def write_file(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("who,when,where,gender\n" + "".join(row.text() for row in rows))
    return path


def write_dates(folder: Path, rows: list[Row]) -> dict[int, Path]:
    """A file for each local date, as operators send them; by study day, also of dates beside the study."""
    of_date: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of_date[(row.local.date() - FIRST_DAY).days + 1].append(row)
    folder.mkdir(exist_ok=True)
    return {day: write_file(folder / f"date-{day}.csv", mine) for day, mine in sorted(of_date.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """By (person, study day); a zone is None where the answer is no zone. `main_cell`: place in CELLS."""

    visitors: set[tuple[str, int]]
    main_cell: dict[tuple[str, int], int]
    stayed_in: dict[tuple[str, int], str | None]
    slept_in: dict[tuple[str, int], str | None]
    ignored: Counter[str]

    def counts(self, what: dict[tuple[str, int], str | None], *, day: int, who: set[str]) -> Counter[str]:
        zones = (zone for (person, of_day), zone in what.items() if of_day == day and person in who)
        return Counter(zone for zone in zones if zone)


def truth_of(rows: Iterable[Row]) -> Truth:
    """The rules, row by row."""
    by_day: dict[tuple[str, int], list[Row]] = defaultdict(list)
    by_night: dict[tuple[str, int], list[Row]] = defaultdict(list)
    ignored: Counter[str] = Counter()
    for row in dict.fromkeys(rows):
        day = (row.local.date() - FIRST_DAY).days + 1
        night = day if row.local.hour >= NIGHT_FROM else day - 1 if row.local.hour < NIGHT_TO else 0
        is_night = 1 <= night <= DAYS
        is_visit = 1 <= day <= DAYS and row.local.hour >= 6
        if not is_night and not 1 <= day <= DAYS:
            ignored["outside_period"] += 1
        elif row.cell not in ZONE_OF:
            ignored["outside_area"] += 1
        elif not is_night and not is_visit:
            ignored["outside_hours"] += 1
        else:
            if is_visit:
                by_day[row.who, day].append(row)
            if is_night:
                by_night[row.who, night].append(row)
    visitors = {
        key for key, mine in by_day.items() if max(r.at for r in mine) - min(r.at for r in mine) >= MIN_STAY
    }
    main_cell = {key: _longest(by_day[key], until=None) for key in visitors}
    return Truth(
        visitors=visitors,
        main_cell=main_cell,
        stayed_in={key: ZONE_OF[CELLS[cell]] for key, cell in main_cell.items()},
        slept_in={
            key: ZONE_OF[CELLS[_longest(by_night[key], until=_end_of_night(key[1]))]]
            for key in visitors
            if key in by_night
        },
        ignored=ignored,
    )


def _end_of_night(day: int) -> datetime:
    return datetime.combine(
        FIRST_DAY + timedelta(days=day), datetime.min.time().replace(hour=NIGHT_TO), PARIS
    ).astimezone(UTC)


def _longest(rows: list[Row], *, until: datetime | None) -> int:
    """Each quarter-hour's last event lasts until the next one's; the place in CELLS."""
    last: dict[int, tuple[datetime, int]] = {}
    for row in rows:
        quarter = int(row.at.timestamp()) // QUARTER_S
        place = -CELLS.index(row.cell)
        last[quarter] = max(last.get(quarter, (row.at, place)), (row.at, place))
    kept = [last[quarter] for quarter in sorted(last)]
    ends = [*(at for at, _ in kept[1:]), until or kept[-1][0]]
    stays: Counter[int] = Counter()
    for (at, place), end in zip(kept, ends, strict=True):
        stays[-place] += int((end - at).total_seconds())
    return min(stays, key=lambda cell: (-stays[cell], cell))
