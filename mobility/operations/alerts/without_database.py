"""Alerts without the main database: only its failure is sent, and a file remembers to whom.

The file is in the data folder of this host. Hosts that share no folder each tell.
"""

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from mobility.base.locks import exclusive
from mobility.base.runtime import write_private
from mobility.operations.alerts.channels import Channel, ChannelError, channels
from mobility.operations.alerts.sending import Outcome, message
from mobility.operations.findings import Finding, Level

CODE: Final = "database_unreachable"
SUBJECT: Final = "default"


def take_turn(*, after_s: float) -> bool:
    """Take a turn like `alerts.take_turn`, for the processes that share this data folder."""
    stamp = settings.PATHS.run / "alerts.turn"
    with exclusive(settings.PATHS.run / "alerts.lock"):
        if stamp.exists() and 0 <= time.time() - stamp.stat().st_mtime < after_s:
            return False
        write_private(stamp, "")
        return True


def check(findings: list[Finding], *, now: datetime) -> Outcome:
    """Send an alert when the main database does not answer: at first sight, and then now and then."""
    alarm = (CODE, SUBJECT, Level.ERROR)
    seen = [each for each in findings if (each.code, each.subject, each.level) == alarm]
    result = Outcome(open=len(seen))
    if not seen:
        return result
    with exclusive(settings.PATHS.run / "alerts.lock"):
        state = _read() or {"since": now.isoformat(), "told": {}}
        if state["since"] != now.isoformat():
            repeat = timedelta(hours=settings.MOBILITY_ALERT_REPEAT_H)
            for channel in channels():
                last = state["told"].get(channel.name)
                if last is None or now - datetime.fromisoformat(last) >= repeat:
                    kind = "reminder" if last else "opened"
                    if _tell(channel, seen[0], kind=kind, state=state, now=now, result=result):
                        state["told"][channel.name] = now.isoformat()
        write_private(_file(), json.dumps(state))
    return result


def end(*, now: datetime) -> None:
    """The main database answers again: say so where the contrary was said."""
    if not _file().exists():
        return
    with exclusive(settings.PATHS.run / "alerts.lock"):
        state = _read()
        if state is None:
            return
        finding = Finding(code=CODE, level=Level.OK, subject=SUBJECT, facts={"ms": 0, "bytes": 0})
        result = Outcome(open=0)
        for channel in channels():
            if channel.name in state["told"] and _tell(
                channel, finding, kind="ended", state=state, now=now, result=result
            ):
                del state["told"][channel.name]
        if set(state["told"]) & {channel.name for channel in channels()}:
            write_private(_file(), json.dumps(state))  # tried again with the next look
        else:
            _file().unlink()


def _tell(
    channel: Channel, finding: Finding, *, kind: str, state: dict[str, Any], now: datetime, result: Outcome
) -> bool:
    since = datetime.fromisoformat(state["since"])
    # A reminder's id changes by the day: what is tried again within it has the same.
    day = now.date().isoformat() if kind == "reminder" else ""
    name = f"apart|{settings.MOBILITY_ZONE}|{state['since']}|{kind}|{day}"
    try:
        list(channel.send([message(finding, kind=kind, since=since, now=now, name=name)]))
    except ChannelError as error:
        result.failed[channel.name] = str(error)
        return False
    result.told[channel.name] = 1
    return True


def _file() -> Path:
    path: Path = settings.PATHS.run / "alerts.json"
    return path


def _read() -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads(_file().read_text())
    except (OSError, ValueError):
        return None
    return state
