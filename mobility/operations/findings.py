"""Findings about an installation: one list for pages, health checks, metrics, alerts and the doctor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from django.conf import settings
from django.db import connections

from mobility.operations.findings_texts import FINE

Fact = int | float | str


class Level(IntEnum):
    """Severity. NOTE: worth knowing. WARNING: act within a day. ERROR: act now."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3


# Each has a page of the runbook: docs/runbook/CODE.md, dashes for underscores.
CODES: Final = tuple(FINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    code : of CODES
    subject : what exactly: the slug of a study, the alias of a database; nothing of a row or a person
    facts : numbers and short words for people to read, by the names that `wording` uses
    """

    code: str
    level: Level
    subject: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"code must be one of CODES, got {self.code!r}")


def finding(code: str, level: Level = Level.OK, subject: str = "", **facts: Fact) -> Finding:
    """Make a finding of its facts by name."""
    return Finding(code=code, level=level, subject=subject, facts=facts)


def is_trial() -> bool:
    """A trial on one machine may go without care; where a database server was set up, people rely on it."""
    return bool(settings.EMBEDDED_REDIS) and connections["default"].vendor == "sqlite"
