"""Findings about an installation: one list for pages, health checks, metrics, alerts and the doctor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

Fact = int | float | str


class Level(IntEnum):
    """Severity. NOTE: worth knowing. WARNING: act within a day. ERROR: act now."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3


# Each has a page of the runbook: docs/runbook/CODE.md, dashes for underscores.
CODES: Final = (
    "database_unreachable",  # subject: default or vault
    "migrations_pending",  # subject: default or vault
    "broker_unreachable",
    "workers_missing",  # no one works on a queue: subject is the queue
    "worker_silent",  # one of several: subject is its name
    "queue_long",
    "job_failed",  # a periodic job: subject is its name
    "disk_low",  # subject: data, staging, keystore, backups
    "keystore_unusable",
    "key_missing",  # an open study without its key: subject is the study
    "key_due",  # a key that must be destroyed soon, or should have been: subject is the study
    "batch_failed",  # subject: the study
    "batch_waiting",  # a batch that has not moved for long: subject is the study
    "feed_late",  # subject: the study
    "day_open",  # a day that is long over and still open: subject is the study
    "handover_waiting",  # the analyst server does not take what is handed over
    "study_stopped",  # after a restore it does not fit its totals: subject is the study
    "ledger_broken",
    "backup_old",
    "escrow_old",  # a key that is in no escrow yet
    "settings_unsafe",  # subject: id of the system check
    "alert_untold",  # a channel refuses messages: subject is the channel
    "look_failed",  # a probe broke: subject is its name
)


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
