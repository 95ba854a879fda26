"""The one rule of who counts as a second person, for everything that takes two: plans, caps, days to undo.

Two accounts are two people only if no one can act through both. Anyone who created an account, or changed its
password, roles or second factor, may act through it: for MOBILITY_SECOND_PERSON_DAYS it counts as theirs. The
ledger says who changed what; a command on the server has the trust of the server, and counts for no one.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from reports.accounts.names import RESERVED, folded
from reports.base import formats
from reports.ledger.models import LedgerEntry, LedgerKind

# Changes of rights by which no one comes to act as someone else, or brings an accomplice in.
HARMLESS: Final = frozenset({"granted", "withdrawn", "deactivated", "revoked"})
# They bring an accomplice in, but do not let anyone act as that account.
ROLES_ONLY: Final = frozenset({"roles", "activated"})
DAYS_MAX: Final = 36_500  # permanently: a calendar does not go back as far as a setting may ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One account changed another."""

    actor: str
    account: str
    what: str
    at: datetime

    @property
    def words(self) -> str:
        """The change as a sentence."""
        patterns = {
            "created": gettext("%(actor)s created the account %(account)s on %(day)s."),
            "password replaced": gettext("%(actor)s reset the password of %(account)s on %(day)s."),
            "roles": gettext("%(actor)s changed the roles of %(account)s on %(day)s."),
            "activated": gettext("%(actor)s enabled the account %(account)s on %(day)s."),
        }
        other = gettext("%(actor)s changed the second factor of %(account)s on %(day)s.")
        values = {"actor": self.actor, "account": self.account, "day": formats.day_title(self.at.date())}
        return patterns.get(self.what, other) % values


def is_author(reviewer: str, *, authors: Iterable[str]) -> bool:
    """Return whether an account is among those that wrote or requested the change to approve."""
    return folded(reviewer) in {folded(author) for author in authors}


def obstacle(reviewer: str, *, authors: Collection[str], of_author: str, at: datetime | None = None) -> str:
    """Say why an approval does not count; empty if it does.

    Parameters
    ----------
    reviewer : name of the account that approves
    authors : names of the accounts that wrote or asked for it
    of_author : what to say to a reviewer who is one of them
    at : when it was approved; None = now
    """
    if is_author(reviewer, authors=authors):
        return of_author
    when = at or timezone.now()
    # Now, all that the ledger has counts: another host, whose clock is ahead, may have written it.
    changes = _changes(since=when - _window(), until=at)
    found = _link(reviewer, authors=authors, changes=changes)
    if not found:
        return ""
    ends = when
    for n, change in enumerate(changes):  # oldest first: each drops out when its time is over
        ends = change.at + _window()
        if not _link(reviewer, authors=authors, changes=changes[n + 1 :]):
            break
    return _refusal(reviewer, ends=ends, changes=found)


def _refusal(reviewer: str, *, ends: datetime, changes: Iterable[Change]) -> str:
    n = _window().days
    text = ngettext(
        "%(changes)s %(reviewer)s therefore cannot approve this request before %(day)s, when the "
        "waiting period ends. The waiting period is %(n)d day (setting "
        "MOBILITY_SECOND_PERSON_DAYS). Ask another administrator or a privacy officer to approve the "
        "request.",
        "%(changes)s %(reviewer)s therefore cannot approve this request before %(day)s, when the "
        "waiting period ends. The waiting period is %(n)d days (setting "
        "MOBILITY_SECOND_PERSON_DAYS). Ask another administrator or a privacy officer to approve the "
        "request.",
        n,
    )
    ends += timedelta(minutes=1)  # shown without seconds
    day = f"{formats.day_title(ends.date())}, {ends:%H:%M} UTC"
    words = " ".join(change.words for change in changes)
    return text % {"changes": words, "reviewer": reviewer, "day": day, "n": n}


def _window() -> timedelta:
    return timedelta(days=min(settings.MOBILITY_SECOND_PERSON_DAYS, DAYS_MAX))


def _changes(*, since: datetime, until: datetime | None) -> list[Change]:
    """Return changes of one account by another, oldest first; `until` None: to the end of the ledger."""
    rows = LedgerEntry.objects.filter(kind=str(LedgerKind.ACCESS_CHANGED), at__gt=since)
    if until is not None:
        rows = rows.filter(at__lte=until)
    found = []
    for actor, facts, at in rows.order_by("number").values_list("actor", "facts", "at"):
        account, what = str(facts.get("account", "")), str(facts.get("change", ""))
        is_person = bool(actor) and " " not in actor and actor not in RESERVED
        if account and is_person and what not in HARMLESS and folded(actor) != folded(account):
            found.append(Change(actor=actor, account=account, what=what, at=at))
    return found


def _link(reviewer: str, *, authors: Collection[str], changes: Collection[Change]) -> list[Change]:
    """Find the changes by which one person could act as the reviewer and as an author; empty if none can."""
    behind_reviewer = _behind([reviewer], changes, counts=lambda _: True)
    behind_authors = _behind(authors, changes, counts=lambda change: change.what not in ROLES_ONLY)
    for name, way in behind_reviewer.items():
        if name in behind_authors:
            return [*way, *behind_authors[name]]
    return []


def _behind(
    names: Iterable[str], changes: Collection[Change], *, counts: Callable[[Change], bool]
) -> dict[str, list[Change]]:
    """Return accounts whose owners could act through `names`, folded, with the changes that lead there."""
    found: dict[str, list[Change]] = {folded(name): [] for name in names}
    waiting = list(found)
    while waiting:
        name = waiting.pop(0)
        for change in changes:
            actor = folded(change.actor)
            if folded(change.account) == name and actor not in found and counts(change):
                found[actor] = [change, *found[name]]
                waiting.append(actor)
    return found
