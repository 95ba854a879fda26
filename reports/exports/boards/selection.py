"""Subject of the file of a board: its tiles with their figures in one window."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from html import unescape
from urllib.parse import urlencode

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.translation import gettext

from reports.boards.contents import Shown, board_context, chart_notes
from reports.boards.models import Board
from reports.estimates.picker import window_title
from reports.estimates.queries import Window, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.facts import software_words
from reports.privacy.plain_texts import plain_privacy
from reports.studies import texts as studies_texts
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan

_BOARD = "board"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFile:
    """A board in a window; tiles that it hides are left out."""

    board: Board
    window: Window
    tiles: tuple[Shown, ...]
    has_bars: bool
    plan: Plan

    @property
    def study(self) -> Study:
        return self.board.study

    @property
    def last_date(self) -> date:
        return self.study.date_of(self.window.last_day)

    @property
    def name(self) -> str:
        """Name of the file without its ending; the ledger keeps it, so it has no words of the reader."""
        first = self.study.date_of(self.window.first_day)
        return f"{self.study.slug}_board_{self.board.pk}_{first}_{self.last_date}"

    @property
    def days_title(self) -> str:
        return window_title(self.study, self.window)

    @property
    def facts(self) -> Mapping[str, str]:
        """Sources of the figures, for the metadata."""
        first = self.study.date_of(self.window.first_day)
        return {
            "study": self.study.slug,
            "days": f"{first}/{self.last_date}",
            "timezone": self.study.timezone,
            "plan_version": str(self.plan.version),
            "plan_sha256": self.plan.spec_hash,
            "statement": f"/studies/{self.study.slug}/statement.json",
            "software": software_words(),
        }

    @property
    def source_words(self) -> str:
        """Study, plan and software in a line."""
        return gettext("%(study)s · plan version %(version)d (%(mechanism)s) · %(software)s") % {
            "study": self.study.shown_name,
            "version": self.plan.version,
            "mechanism": self.plan.mechanism,
            "software": software_words(),
        }

    @property
    def reading_words(self) -> list[str]:
        """How to read the figures, and their protection: a board is read without its page."""
        bars = gettext(  # the words of a template, which doubles the sign
            "Bars show estimates, adjusted so that none is negative and they add up to 100%%. Lines show "
            "95%% intervals. A pale bar means that the interval includes zero, so there may be no visitors "
            "in that category."
        )
        visitor = gettext("Definition of a visitor: %(rule)s") % {
            "rule": studies_texts.visitor_rule(self.study)
        }
        notes = chart_notes(self.tiles)
        notes += [studies_texts.invented_words(self.study) for tile in self.tiles if tile.map]
        first = [bars % {}] if self.has_bars else []
        return [*first, *filter(None, dict.fromkeys(notes)), visitor, *self._privacy_words]

    @property
    def _privacy_words(self) -> list[str]:
        """Whom figures count and how answers are protected, in the words of a shared board."""
        context = plain_privacy(self.plan, {each.tile.of for each in self.tiles})
        scaling = " ".join(unescape(render_to_string("estimates/_scaling.html", context)).split())
        return [scaling, context["truth_words"], context["loss_words"], context["open_words"]]


def options_of(board: Board) -> str:
    """Part of a recipe that names a board."""
    return urlencode({_BOARD: board.pk})


def board_named(study: Study, options: str) -> Board | None:
    """The board of a recipe; None if it is gone."""
    board = Board.objects.filter(study=study, pk=QueryDict(options)[_BOARD]).first()
    if board is not None:
        board.study = study
    return board


def select_board(study: Study, window: Window, *, options: str) -> BoardFile:
    """The board of a recipe with its figures now; ExportError if it is gone."""
    board = board_named(study, options)
    if board is None:
        raise ExportError(gettext("This study has no such board."))
    indicators = list(study.indicators.all())
    found = board_context(board, indicators, window, visitors=visitor_unions(study))
    return BoardFile(
        board=board,
        window=window,
        tiles=tuple(found["tiles"]),
        has_bars=found["has_bars"],
        plan=current_plan(study),
    )
