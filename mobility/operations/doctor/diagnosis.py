"""Result of one check of the doctor."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from mobility.operations.findings import Level

# In addition to mobility.operations.findings: checks that take too long, or too many rights, for a status
# page. Each is a row of docs/doctor.md.
CODES: Final = (
    "check_failed",  # a check broke; subject is its name
    "clock_skewed",  # subject: default, vault, broker, analyst server or the name of a worker
    "database_setting",  # subject: alias and setting
    "database_damaged",  # subject: alias
    "broker_setting",
    "storage_unusable",  # the storage of staged uploads
    "storage_not_shared",  # subject: name of a worker
    "storage_orphans",
    "keystore_open",  # others could read keys
    "keys_not_shared",  # subject: name of a worker
    "key_outlived",  # a closed study or an ended batch whose key is still there; subject: its id
    "seal_broken",  # subject: the study
    "shard_unfinished",  # a batch that is done and lacks shards; subject: the study
    "study_missing",  # in one database only; subject: the study
    "plan_differs",  # subject: the study
    "publication_missing",  # the analyst zone lacks some; subject: the study
    "publication_unknown",  # the vault lacks some; subject: the study
    "slots_differ",  # slots that are closed never arrived; subject: the study
    "totals_negative",  # subject: the study
    "totals_differ",  # totals are not what the vault's presence gives; subject: the study
    "version_mixed",  # subject: name of a worker
    "core_dumps",
    "open_files",
    "temporary_folder",
    "time_zones",  # subject: the zone
    "static_missing",
    "translations_missing",
    "kernels_uncached",
    "analyst_unreachable",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Problem, fact worth knowing, or good result.

    Parameters
    ----------
    code : of CODES, or of `mobility.operations.findings.CODES`
    subject : what exactly; nothing of a row or a person
    what, todo : plain English; empty where it is fine
    page : where more is said
    """

    code: str
    level: Level
    subject: str = ""
    what: str = ""
    todo: str = ""
    page: str = "docs/doctor.md"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"level": self.level.name.lower()}


Diagnoses = Iterator[Diagnosis]
Check = Callable[[], Iterable[Diagnosis]]


def fine(code: str, subject: str = "") -> Diagnosis:
    return Diagnosis(code=code, level=Level.OK, subject=subject)


def error(code: str, what: str, todo: str, *, subject: str = "") -> Diagnosis:
    return Diagnosis(code=code, level=Level.ERROR, subject=subject, what=what, todo=todo)


def warning(code: str, what: str, todo: str, *, subject: str = "") -> Diagnosis:
    return Diagnosis(code=code, level=Level.WARNING, subject=subject, what=what, todo=todo)


def note(code: str, what: str, todo: str, *, subject: str = "") -> Diagnosis:
    return Diagnosis(code=code, level=Level.NOTE, subject=subject, what=what, todo=todo)


def error_if(wrong: object, code: str, what: str, todo: str, *, subject: str = "") -> Diagnosis:
    return error(code, what, todo, subject=subject) if wrong else fine(code, subject)


def warning_if(wrong: object, code: str, what: str, todo: str, *, subject: str = "") -> Diagnosis:
    return warning(code, what, todo, subject=subject) if wrong else fine(code, subject)
