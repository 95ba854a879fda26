"""Due messages of each channel, and sending them: at least once, with the same id each time."""

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.urls import NoReverseMatch, reverse
from django.utils import translation

from mobility.operations.alerts.channels import Channel, ChannelError, Message, channels
from mobility.operations.findings import CODES, Finding, Level
from mobility.operations.models import Alert, AlertChannel
from mobility.operations.texts import words

log = logging.getLogger(__name__)
BUSY_S: Final = 300  # a process that dies while it sends holds the channel for so long
FIRST_RETRY_S: Final = 30
LAST_RETRY_S: Final = 3600
UNTOLD_DAYS: Final = 7  # that something is over is not told later than this
AT_ONCE: Final = 50  # messages that one look sends by a channel
# Each time it is found again it is news, although the alert is open: which fact grows then.
GROWS: Final = {"batch_failed": "batches"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a check: alerts that are open, and by channel messages accepted and kinds of errors."""

    open: int
    told: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def tell(*, n_open: int, now: datetime) -> Outcome:
    """Send what is due by every channel whose turn it is."""
    result = Outcome(open=n_open)
    for channel in channels():
        row = _claim(channel.name, now=now)
        if row is None:
            continue
        try:
            result.told[channel.name] = n_told = _send_due(channel, row, now=now)
            _note_success(row, now=now if n_told else row.told_at)
        except ChannelError as error:
            result.failed[channel.name] = str(error)
            _note_failure(row, error=str(error), now=now)
    return result


def kind_of(
    alert: Alert, told: dict[str, Any] | None, *, now: datetime, failing_since: datetime | None = None
) -> str:
    """Return the kind of message due on a channel that last sent `told`; empty if none is."""
    if alert.ended_at is not None:
        if told is None:  # it came and went while the channel took nothing: told late, and once
            return "ended" if failing_since is not None and alert.ended_at >= failing_since else ""
        return "" if told["kind"] == "ended" else "ended"
    if told is None:
        return "opened" if alert.seen_at > alert.since else ""
    if Level[alert.level.upper()] > Level[str(told["level"]).upper()]:
        return "worse"
    if grown(alert) > int(told.get("grown", 0)):
        return "again"
    repeat = timedelta(hours=settings.MOBILITY_ALERT_REPEAT_H)
    return "reminder" if now - datetime.fromisoformat(told["at"]) >= repeat else ""


def message_of(alert: Alert, *, kind: str, number: int, now: datetime) -> Message:
    """The message; `number` counts those of this alert by this channel, and keeps their ids apart."""
    finding = Finding(
        code=alert.code, level=Level[alert.level.upper()], subject=alert.subject, facts=alert.facts
    )
    parts = (alert.zone, alert.code, alert.subject, alert.since.isoformat(), kind, str(number))
    return message(finding, kind=kind, since=alert.since, now=now, name="|".join(parts))


def message(finding: Finding, *, kind: str, since: datetime, now: datetime, name: str) -> Message:
    """A finding as shown to people, in the language of the installation."""
    with translation.override(settings.LANGUAGE_CODE):
        said = words(finding)
    return Message(
        id=hashlib.sha256(name.encode()).hexdigest()[:32],
        kind=kind,
        at=now.isoformat(timespec="seconds"),
        zone=settings.MOBILITY_ZONE,
        code=finding.code,
        level=finding.level.name.lower(),
        subject=finding.subject,
        since=since.isoformat(timespec="seconds"),
        title=said.title,
        what=said.what,
        todo=said.todo,
        status_url=status_url(),
        runbook=runbook_of(finding.code),
        facts=dict(finding.facts),
    )


def status_url() -> str:
    """Address of the status page; without MOBILITY_SITE_URL its path."""
    try:
        path = reverse("status")
    except NoReverseMatch:
        path = "/status/"
    return f"{settings.MOBILITY_SITE_URL}{path}"


def runbook_of(code: str) -> str:
    return f"docs/runbook/{code.replace('_', '-')}.md"


def due(
    channel: str, *, now: datetime, failing_since: datetime | None = None
) -> Iterator[tuple[Alert, Message]]:
    """Return the messages due on a channel: the worst first. Other releases' findings have no words here."""
    lately = Q(ended_at=None) | Q(ended_at__gte=now - timedelta(days=UNTOLD_DAYS))
    found = Alert.objects.filter(lately, zone=settings.MOBILITY_ZONE, code__in=CODES)
    for alert in sorted(found, key=lambda each: (-Level[each.level.upper()], each.since)):
        if alert.code == "alert_untold" and alert.subject == channel:
            continue  # by this channel it would come when it is over
        told = alert.told.get(channel)
        if kind := kind_of(alert, told, now=now, failing_since=failing_since):
            number = told["number"] + 1 if told else 1
            yield alert, message_of(alert, kind=kind, number=number, now=now)


def _send_due(channel: Channel, row: AlertChannel, *, now: datetime) -> int:
    waiting = due(channel.name, now=now, failing_since=row.failing_since)
    pending = {message.id: (alert, message) for alert, message in waiting}
    n_told = 0
    for sent in channel.send([message for _, message in pending.values()][:AT_ONCE]):
        alert, _ = pending[sent.id]
        number = alert.told.get(channel.name, {}).get("number", 0) + 1
        alert.told[channel.name] = {
            "kind": sent.kind, "level": sent.level, "at": now.isoformat(), "number": number,
            "grown": grown(alert),
        }  # fmt: skip
        alert.save(update_fields=["told"])
        n_told += 1
        log.info(
            "alert_told code=%s subject=%s kind=%s channel=%s",
            alert.code, alert.subject, sent.kind, channel.name,
        )  # fmt: skip
    return n_told


def grown(alert: Alert) -> int:
    """Return the size of the problem, if growth is news."""
    fact = alert.facts.get(GROWS.get(alert.code, ""), 0)
    return int(fact) if isinstance(fact, int | float) else 0


def _claim(name: str, *, now: datetime) -> AlertChannel | None:
    """The channel, if no one else sends by it and it is time to try."""
    row, _ = AlertChannel.objects.get_or_create(zone=settings.MOBILITY_ZONE, name=name)
    free = Q(busy_until=None) | Q(busy_until__lt=now)
    time_to_try = Q(next_try_at=None) | Q(next_try_at__lte=now)
    claimed = AlertChannel.objects.filter(free, time_to_try, pk=row.pk)
    if claimed.update(busy_until=now + timedelta(seconds=BUSY_S)) == 0:
        return None
    row.refresh_from_db()
    return row


def _note_success(row: AlertChannel, *, now: datetime | None) -> None:
    row.told_at, row.busy_until, row.failing_since, row.next_try_at = now, None, None, None
    row.failures, row.error = 0, ""
    row.save()


def _note_failure(row: AlertChannel, *, error: str, now: datetime) -> None:
    log.warning("alert_untold channel=%s error=%s", row.name, error)
    row.busy_until = None
    row.failing_since = row.failing_since or now
    row.failures = min(row.failures + 1, 1000)
    row.error = error[:64]
    wait_s = min(FIRST_RETRY_S * 2 ** min(row.failures - 1, 16), LAST_RETRY_S)
    row.next_try_at = now + timedelta(seconds=wait_s)
    row.save()
