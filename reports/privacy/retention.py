"""Data retention of a study, and the data that its closing has ended."""

from datetime import UTC, datetime
from typing import TypedDict

from django.conf import settings
from django.utils.translation import gettext, ngettext

from reports.studies.models import Study


class Kept(TypedDict):
    """Kept data and their end; `date` where the day is known, as ISO writes it."""

    name: str
    until: str
    date: str | None
    text: str


def retention(study: Study) -> list[Kept]:
    """Describe a study's data retention, in words."""
    batch, day = gettext("the end of its batch"), gettext("the closing of the day")
    key, with_key, on = _of_key(study)
    logs = settings.MOBILITY_SHARE_LOG_DAYS
    no_date = gettext("no date set")
    rows: dict[str, tuple[str, str | None, str]] = {
        "staged_upload": (batch, None, gettext("Uploaded file, encrypted from its first byte.")),
        "identifiers": (
            batch,
            None,
            gettext("Identifiers: replaced by keyed pseudonyms in memory, never stored."),
        ),
        "day_state": (
            day,
            None,
            gettext(
                "First and last event of each pseudonym on an open day, and its stays by cell if places "
                "are collected, sealed."
            ),
        ),
        "presence": (
            with_key,
            on,
            gettext(
                "Days present and sanitised answers of each pseudonym, sealed: pseudonymous, not anonymous."
            ),
        ),
        "key": (key, on, gettext("Study key, in the keystore only: in no database.")),
        "totals": (no_date, None, gettext("Totals of sanitised answers, in the analyst zone.")),
        "share_log": (
            ngettext("%(n)d day after it was opened", "%(n)d days after it was opened", logs) % {"n": logs},
            None,
            gettext("Times at which a share link was opened; nothing about the person who opened it."),
        ),
        "sessions": (
            gettext("an hour after its end"),
            None,
            gettext("Account sessions: address and type of the browser, shown only to the account."),
        ),
        "ledger": (
            no_date,
            None,
            gettext(
                "Ledger (audit log) of actions and the accounts that took them: no values, no subscriber "
                "identifiers."
            ),
        ),
    }
    return [
        {"name": name, "until": until, "date": on, "text": text} for name, (until, on, text) in rows.items()
    ]


def closed_on(moment: datetime) -> str:
    """Day of a closing, in UTC."""
    return moment.astimezone(UTC).date().isoformat()


def _of_key(study: Study) -> tuple[str, str, str | None]:
    """Return the end of the key, the data that go with it, and the day."""
    if study.closed_at is not None:
        on = closed_on(study.closed_at)
        destroyed = gettext("destroyed on %(day)s") % {"day": on}
        return destroyed, destroyed, on
    if study.key_until is None:
        return gettext("its destruction"), gettext("the destruction of the study's key"), None
    on = study.key_until.isoformat()
    return (
        gettext("its destruction, no later than %(day)s") % {"day": on},
        gettext("the destruction of the study's key, no later than %(day)s") % {"day": on},
        on,
    )
