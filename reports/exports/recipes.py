"""Contents of a requested file, as plain values: named by a web server, made by a worker."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from django.http import QueryDict

from reports.base.later import later
from reports.estimates.options import DaysOptions, ReportOptions, asked_categories, asks_for_groups
from reports.estimates.queries import Window, WindowReport, windows_of_indicator
from reports.exports.boards.selection import select_board
from reports.exports.bundle import Reports, bundle_of
from reports.exports.errors import ExportError
from reports.exports.findings.movements import movement_findings
from reports.exports.findings.scenarios import asked_question, scenario_answer, scenario_findings
from reports.exports.formats.choosing import (
    BOARD,
    FORMATS,
    MOVEMENT,
    PLACES,
    PRESENCE,
    SCENARIO,
    SCENARIO_ANSWER,
    Format,
)
from reports.exports.places.selection import select_places
from reports.exports.presence.selection import select_presence
from reports.exports.presence.tables import SlotTable
from reports.exports.selection import (
    Scope,
    Selection,
    select_days,
    select_study,
    select_summary,
    select_window,
)
from reports.movement.queries import movement
from reports.movement.query import asked_of
from reports.scenario.population import PopulationError, synthesise
from reports.scenario.queries import Prepared
from reports.studies.models import Indicator, Study

Tick = Callable[[int], None]
# Rows of a file that is made while its reader waits: it takes a web server less than 0.1 s. All else is made
# by a worker: what has more rows, what is drawn, what has shapes, and bundles.
AT_ONCE_ROWS: Final = {
    **dict.fromkeys(("csv", "json", "cumulative.csv", "sdmx.csv", "sdmx.json", "parquet"), 5_000),
    "xlsx": 500,
}
BUNDLE: Final = "bundle"
POPULATION: Final = "population"
_population_zip = later("reports.scenario.population_files.population_zip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A file of a study; two that are equal, in one language and of one tally, have the same bytes.

    Parameters
    ----------
    scope : "window", "days" or "study"; "bundle", "movement", "scenario", "population", "presence", "board";
        of places zones, squares, hexagons or maps
    ending : of its format
    indicator : slug; "" of the whole study and of places
    first_day, last_day : numbers of the days of a window, or of those that a page of days shows; 0 = all
    options : how its page shows it, as a part of an address; of data only whether they are of groups; of
        movements which they are, of a scenario what is asked, of a board which one
    """

    scope: str
    ending: str
    indicator: str = ""
    first_day: int = 0
    last_day: int = 0
    options: str = ""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def window(self) -> Window:
        return Window(self.first_day, self.last_day)

    @property
    def is_of_places(self) -> bool:
        return self.scope in PLACES

    @property
    def format(self) -> Format:
        """Format of all files but bundles."""
        return FORMATS[self.scope][self.ending]

    @property
    def content_type(self) -> str:
        is_zip = self.scope in (BUNDLE, POPULATION)
        return "application/zip" if is_zip else self.format.content_type

    def is_made_at_once(self, study: Study) -> bool:
        """Return whether it is so small that its reader waits for it."""
        if self.scope == SCENARIO:
            return Prepared.of(asked_question(study, self.options), self.indicator_of(study)).is_quick
        if self.scope == PRESENCE:
            return self.slot_table(study).n_rows <= AT_ONCE_ROWS.get(self.ending, 0)
        if self.scope not in (*Scope, MOVEMENT) or self.ending not in AT_ONCE_ROWS:
            return False
        indicators = (
            study.indicators.filter(slug=self.indicator) if self.indicator else study.indicators.all()
        )
        n_rows = sum(self._n_windows(each) * len(each.categories) for each in indicators)
        return n_rows <= AT_ONCE_ROWS[self.ending]

    def slot_table(self, study: Study) -> SlotTable:
        """Slots and zones of a file of presence."""
        return select_presence(
            study,
            first_day=self.first_day,
            last_day=self.last_day,
            options=self.options,
            is_drawn=self.format.is_drawn,
        )

    def indicator_of(self, study: Study) -> Indicator | None:
        """The indicator; None of the whole study."""
        return study.indicators.get(slug=self.indicator) if self.indicator else None

    def _n_windows(self, indicator: Indicator) -> int:
        if self.scope == Scope.WINDOW:
            return 1
        of_days = self.scope in (Scope.DAYS, MOVEMENT)
        return indicator.study.days if of_days else len(windows_of_indicator(indicator))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that is made."""

    name: str
    content_type: str
    content: bytes


def write(study: Study, recipe: Recipe, *, tick: Tick = lambda _: None) -> Written:
    """Make a file; ExportError or WindowError, in words, if there is no such file.

    `tick` takes, now and then, how many percent are done; what it raises ends the writing.
    """
    tick(0)

    def watched(reports: Reports) -> Reports:
        return _Watched(reports, tick)

    if recipe.scope in (SCENARIO, SCENARIO_ANSWER):
        name, content = _scenario(study, recipe, tick=tick)
    elif recipe.scope == BUNDLE:
        name, content = f"{study.slug}_bundle.zip", bundle_of(study, watched=watched)
    elif recipe.scope == POPULATION:
        name, content = f"{study.slug}_population.zip", _population(study, tick=tick)
    elif recipe.scope == PRESENCE:
        table = recipe.slot_table(study)
        name, content = f"{table.name}.{recipe.ending}", recipe.format.write(table)
    elif recipe.scope == BOARD:
        board = select_board(study, recipe.window, options=recipe.options)
        name, content = f"{board.name}.{recipe.ending}", recipe.format.write(board)
    elif recipe.scope == MOVEMENT:
        indicator, query = study.indicators.get(slug=recipe.indicator), QueryDict(recipe.options)
        findings = movement_findings(movement(indicator, **asked_of(query, indicator=indicator)))
        name, content = f"{findings.name}.{recipe.ending}", recipe.format.write(findings)
    elif recipe.is_of_places:
        options = ReportOptions.from_query(QueryDict(recipe.options))
        places = select_places(study, recipe.window, options=options)
        name, content = f"{places.file_name(recipe.scope)}.{recipe.ending}", recipe.format.write(places)
    else:
        selection = _selected(study, recipe)
        watching = replace(selection, reports=watched(selection.reports))
        name, content = f"{selection.name}.{recipe.ending}", recipe.format.write(watching)
    return Written(name=name, content_type=recipe.content_type, content=content)


def _population(study: Study, *, tick: Tick) -> bytes:
    try:
        packed: bytes = _population_zip(synthesise(study, tick=tick))
    except PopulationError as error:
        raise ExportError(str(error)) from error
    return packed


def _scenario(study: Study, recipe: Recipe, *, tick: Tick) -> tuple[str, bytes]:
    """Name and content of a scenario's file."""
    question, indicator = asked_question(study, recipe.options), recipe.indicator_of(study)
    found = scenario_answer(question, indicator, tick=tick)
    if recipe.scope == SCENARIO_ANSWER:
        return f"{study.slug}_scenario_answer.json", recipe.format.write(found)
    findings = scenario_findings(question, indicator, found)
    return f"{findings.name}.{recipe.ending}", recipe.format.write(findings)


def _selected(study: Study, recipe: Recipe) -> Selection:
    if recipe.scope == Scope.STUDY:
        return select_summary(study) if recipe.format.is_drawn else select_study(study)
    indicator, query = study.indicators.get(slug=recipe.indicator), QueryDict(recipe.options)
    if recipe.scope == Scope.WINDOW:
        return select_window(indicator, recipe.window, options=ReportOptions.from_query(query))
    categories = asked_categories(query, n_categories=len(indicator.categories))
    return select_days(
        indicator,
        options=DaysOptions.from_query(query),
        categories=categories,
        days=recipe.window if recipe.first_day else None,
        by_group=asks_for_groups(query),
    )


class _Watched(tuple[WindowReport, ...]):
    """Reports that tell how many of them a writer has taken.

    Each format goes through them in its own way, some more than once: the share only ever grows.
    """

    _TOLD = 50  # reports from one time to the next

    def __new__(cls, reports: Reports, _tick: Tick) -> Self:
        return super().__new__(cls, reports)

    def __init__(self, _reports: Reports, tick: Tick) -> None:
        self._tick = tick

    def __iter__(self) -> Iterator[WindowReport]:
        for number, report in enumerate(super().__iter__()):
            if number % self._TOLD == 0:
                self._tick(min(99, 100 * number // len(self)))
            yield report
