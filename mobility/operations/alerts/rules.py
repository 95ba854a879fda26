"""Alerts: findings are compared with earlier notifications.

An alert opens when something is found at MOBILITY_ALERT_LEVEL or worse. It is sent when it was seen twice,
again when it becomes worse or has lasted for MOBILITY_ALERT_REPEAT_H, and ends once it was not seen for
MOBILITY_ALERT_SETTLE_S, also because no setting asks for the check. Any worker compares, one at a
time; where none does, the web server replaces it, and a timer may run `manage.py check_alerts`.
"""

import logging
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.utils import timezone

from mobility.operations.alerts import without_database as alerts_apart
from mobility.operations.alerts.channels import channels
from mobility.operations.alerts.sending import Outcome, grown, tell
from mobility.operations.findings import Finding, Level
from mobility.operations.models import Alert, AlertWatch
from mobility.operations.probes.looking import look, looked_for

log = logging.getLogger(__name__)
STAND_IN_AFTER: Final = 5  # times MOBILITY_ALERT_EVERY_S without a look
OFFER_EVERY_S: Final = 30
LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)

_offered_at = float("-inf")


def take_turn(*, after_s: float) -> bool:
    """Return whether the last check is too old; a caller that gets True checks, and no other does."""
    now = timezone.now()
    try:
        zone = settings.MOBILITY_ZONE
        AlertWatch.objects.get_or_create(zone=zone, defaults={"looked_at": LONG_AGO})
        due = AlertWatch.objects.filter(zone=zone, looked_at__lte=now - timedelta(seconds=after_s))
        return due.update(looked_at=now) == 1
    except (DatabaseError, InterfaceError):
        return alerts_apart.take_turn(after_s=after_s)


def look_in_turn() -> Outcome | None:
    """Look, unless someone has just done so. Every worker asks for it again and again."""
    # A little less than the interval: asked every 60 s, a look must not wait for the 61st.
    return check() if take_turn(after_s=settings.MOBILITY_ALERT_EVERY_S * 0.9) else None


def offer_to_stand_in() -> None:
    """Look where no worker does, in a thread: anyone who asks for health waits for none of it."""
    global _offered_at  # noqa: PLW0603 - a process has one
    now = time.monotonic()
    if now - _offered_at < OFFER_EVERY_S or not channels():
        return
    _offered_at = now
    threading.Thread(target=_stand_in_apart, name="alerts", daemon=True).start()


def stand_in() -> bool:
    """Look if no one has for long; whether it did."""
    if not take_turn(after_s=settings.MOBILITY_ALERT_EVERY_S * STAND_IN_AFTER):
        return False
    log.warning("alerts_stand_in")
    check()
    return True


def check(findings: Iterable[Finding] | None = None, *, now: datetime | None = None) -> Outcome:
    """Compare findings with the open alerts, and send the messages due."""
    found = list(look() if findings is None else findings)
    now = now or timezone.now()
    try:
        n_open = compare(found, now=now)
        alerts_apart.end(now=now)
        return tell(n_open=n_open, now=now)
    except (DatabaseError, InterfaceError) as error:
        # Without the main database nothing remembers earlier messages: a file keeps them.
        log.warning("alerts_without_database error=%s", type(error).__name__)
        return alerts_apart.check(found, now=now)


@transaction.atomic
def compare(findings: list[Finding], *, now: datetime) -> int:
    """Open and end alerts; the number that is open then."""
    zone = settings.MOBILITY_ZONE
    threshold = Level[settings.MOBILITY_ALERT_LEVEL.upper()]
    bad = {(each.code, each.subject): each for each in findings if each.level >= threshold}
    unseen = looked_for() - {each.code for each in findings}  # problems there may persist
    n_open = 0
    for alert in Alert.objects.select_for_update().filter(zone=zone, ended_at=None):
        finding = bad.pop((alert.code, alert.subject), None)
        if finding is not None:
            _go_on(alert, finding, now=now)
        elif alert.code not in unseen and _is_over(alert, now=now):
            _end(alert, now=now)
            continue
        n_open += 1
    for finding in bad.values():
        _open(finding, now=now)
    return n_open + len(bad)


def _stand_in_apart() -> None:
    try:
        stand_in()
    finally:
        connections.close_all()  # those of this thread


def _open(finding: Finding, *, now: datetime) -> None:
    Alert.objects.create(
        zone=settings.MOBILITY_ZONE, code=finding.code, subject=finding.subject,
        level=finding.level.name.lower(), facts=dict(finding.facts), since=now, seen_at=now,
    )  # fmt: skip


def _go_on(alert: Alert, finding: Finding, *, now: datetime) -> None:
    alert.seen_at, alert.facts = now, dict(finding.facts)
    alert.level = finding.level.name.lower()
    for told in alert.told.values():  # a smaller problem may grow again
        told["grown"] = min(told["grown"], grown(alert))
    alert.save(update_fields=["seen_at", "facts", "level", "told"])


def _is_over(alert: Alert, *, now: datetime) -> bool:
    return now - alert.seen_at >= timedelta(seconds=settings.MOBILITY_ALERT_SETTLE_S)


def _end(alert: Alert, *, now: datetime) -> None:
    if alert.seen_at == alert.since:
        alert.delete()  # seen once, never sent
        return
    alert.ended_at = now
    alert.save(update_fields=["ended_at"])
