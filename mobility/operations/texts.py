"""Findings in words: what it is, what was found, what to do. In the language that is active when asked."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from mobility.operations.findings import Fact, Finding, Level
from mobility.operations.findings_texts import FINE, TROUBLES
from reports.base.formats import decimal, number, percent

LEVEL_WORDS: Final[dict[Level, str | Promise]] = {
    Level.OK: gettext_lazy("OK"),
    Level.NOTE: gettext_lazy("note"),
    Level.WARNING: gettext_lazy("action needed today"),
    Level.ERROR: gettext_lazy("action needed now"),
}
SUBJECTS: Final[dict[str, str | Promise]] = {
    "default": gettext_lazy("main"),
    "vault": gettext_lazy("vault"),
    "data": gettext_lazy("data folder"),
    "staging": gettext_lazy("staging folder"),
    "keystore": gettext_lazy("keystore"),
    "backups": gettext_lazy("backup folder"),
    "sweep": gettext_lazy("recovery of interrupted work"),
    "forget_old_views": gettext_lazy("data retention"),
    "look_after_ledger": gettext_lazy("ledger check"),
    "look_for_alerts": gettext_lazy("health checks"),
    "look_after_forecasts": gettext_lazy("forecasts"),
    "send_digests": gettext_lazy("boards by e-mail"),
    "catch_up": gettext_lazy("recovery after a restore"),
    "hand_over": gettext_lazy("handover"),
    "email": gettext_lazy("e-mail"),
}
# By the seconds of a unit, the largest first.
DURATIONS: Final[dict[int, Any]] = {
    86_400: ngettext_lazy("%(n)d day", "%(n)d days", "n"),
    3600: ngettext_lazy("%(n)d hour", "%(n)d hours", "n"),
    60: ngettext_lazy("%(n)d minute", "%(n)d minutes", "n"),
    1: ngettext_lazy("%(n)d second", "%(n)d seconds", "n"),
}
INTERVALS: Final[dict[int, Any]] = {
    86_400: ngettext_lazy("every day", "every %(n)d days", "n"),
    3600: ngettext_lazy("every hour", "every %(n)d hours", "n"),
    60: ngettext_lazy("every minute", "every %(n)d minutes", "n"),
    1: ngettext_lazy("every second", "every %(n)d seconds", "n"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A finding for people: a title, a description, and the fix (empty where no action is needed)."""

    title: str
    what: str
    todo: str


def words(finding: Finding) -> Words:
    """A finding in words; a fact that a text names and the finding lacks is a question mark."""
    facts = _known({name: fact_words(name, fact) for name, fact in finding.facts.items()})
    facts["subject"] = subject_words(finding.subject)
    if finding.level == Level.OK:
        title, what = FINE[finding.code]
        return Words(title=str(title) % facts, what=str(what) % facts, todo="")
    code, why = finding.code, str(finding.facts.get("why", ""))
    title, what, todo = TROUBLES.get((code, why)) or TROUBLES[code, ""]
    return Words(title=str(title) % facts, what=str(what) % facts, todo=str(todo) % facts)


def component(finding: Finding) -> str:
    """Return the subject of a check, fine or not."""
    return str(FINE[finding.code][0]) % _known({"subject": subject_words(finding.subject)})


def subject_words(subject: str) -> str:
    """A subject as people call it; a name of theirs as it is."""
    return str(SUBJECTS.get(subject, subject))


def fact_words(name: str, fact: Fact) -> str:
    """A fact with its unit, which its name ends in: 5400 of `oldest_s` is "1 hour"."""
    if isinstance(fact, str):
        return fact
    for ending, say in UNITS.items():
        if name == ending or name.endswith(f"_{ending}"):
            return say(fact)
    return number(fact) if isinstance(fact, int) else decimal(fact, decimals=1)


def duration(seconds: float) -> str:
    """A length of time in its largest unit that it has at least two of, or one exactly: "90 minutes"."""
    return _in_units(seconds, DURATIONS)


def every(seconds: float) -> str:
    """Return an interval in the unit of `duration`: "every 15 seconds", "every hour"."""
    return _in_units(seconds, INTERVALS)


def ago(seconds: float) -> str:
    """Return the time since a moment."""
    if seconds < 1:
        return _("just now")
    return _("%(time)s ago") % {"time": duration(seconds)}


def size(n_bytes: float) -> str:
    """A number of bytes in units of 1,000."""
    for unit, of_bytes in ((_("TB"), 1e12), (_("GB"), 1e9), (_("MB"), 1e6), (_("kB"), 1e3)):
        if n_bytes >= of_bytes:
            return f"{decimal(n_bytes / of_bytes, decimals=1)} {unit}"
    return ngettext("%(n)s byte", "%(n)s bytes", round(n_bytes)) % {"n": number(n_bytes)}


def _in_units(seconds: float, words_of: Mapping[int, Any]) -> str:
    """Whole units in the words of each: of the largest that there are two of, or one exactly."""
    s = max(round(seconds), 0)
    unit_s = next((each for each in words_of if s == each or s >= 2 * each), 1)
    return str(words_of[unit_s] % {"n": s // unit_s})


def _known(facts: dict[str, str]) -> dict[str, str]:
    """Facts by name; nothing that is missing stops a message."""
    return defaultdict(lambda: "?", facts)


UNITS: Final[dict[str, Callable[[float], str]]] = {
    "every_s": every,
    "s": duration,
    "bytes": size,
    "percent": lambda value: percent(value / 100),
    "ms": lambda value: f"{number(max(value, 1))} ms",  # "within 0 ms" would be no answer
}
