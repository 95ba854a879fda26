"""Data retention of a study, and the data that its closing has ended."""

from datetime import UTC, datetime
from typing import TypedDict

from django.conf import settings
from django.utils.translation import gettext, ngettext

from reports.studies.models import Study
from reports.studies.queries import current_plan


class Kept(TypedDict):
    """Kept data and their end; `date` where the day is known, as ISO writes it."""

    name: str
    until: str
    date: str | None
    text: str


def retention(study: Study) -> list[Kept]:
    """Describe a study's data retention, in words."""
    batch, day = gettext("the batch has been processed"), gettext("the day is closed")
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
        "day_state": (day, None, _day_state(has_slots=hasattr(study, "slots"))),
        "presence": (
            with_key,
            on,
            gettext(
                "Encrypted data for each pseudonym: the days present and the randomised answers. This "
                "data is pseudonymous, not anonymous."
            ),
        ),
        "key": (key, on, gettext("Study key, stored only in the keystore, never in a database.")),
        "totals": (no_date, None, gettext("Totals of randomised answers, in the analyst zone.")),
        "share_log": (
            ngettext("%(n)d day after the link was opened", "%(n)d days after the link was opened", logs)
            % {"n": logs},
            None,
            gettext("Times at which a share link was opened; nothing about the person who opened it."),
        ),
        "sessions": (
            gettext("an hour after the session ends"),
            None,
            gettext("Account sessions: IP address and browser type, shown only to the account holder."),
        ),
        "ledger": (
            no_date,
            None,
            gettext(
                "Ledger (audit log): actions and the accounts that took them, without values or "
                "subscriber identifiers."
            ),
        ),
    }
    if study.classes:
        for name in ("day_state", "presence"):
            until, end, text = rows[name]
            rows[name] = (until, end, f"{text} {_class_words()}")
    if study.of_events:
        del rows["presence"]
        rows["day_state"] = (
            gettext("the day is closed, or the study ends"),
            None,
            gettext("Encrypted keys of events and their randomised answers, for each day."),
        )
        rows["identifiers"] = (
            batch,
            None,
            gettext("Rows: replaced by keyed values in memory, never stored."),
        )
        if current_plan(study).parsed.max_events is not None:
            rows["persons"] = (
                with_key,
                on,
                gettext(
                    "Encrypted pseudonyms of people, with the keys of their answered events: they keep the "
                    "limit for each person."
                ),
            )
    return [
        {"name": name, "until": until, "date": on, "text": text} for name, (until, on, text) in rows.items()
    ]


def _day_state(*, has_slots: bool) -> str:
    if has_slots:
        return gettext(
            "Encrypted data for each pseudonym on each day that is not yet closed: the first and last "
            "event, the last cell of each quarter-hour (for time slots) and, if places are collected, the "
            "stays in each cell."
        )
    return gettext(
        "Encrypted data for each pseudonym on each day that is not yet closed: the first and last event "
        "and, if places are collected, the stays in each cell."
    )


def _class_words() -> str:
    return gettext(
        "This data includes the class of the subscriber, without noise, because the class is public."
    )


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
        return gettext("the key is destroyed"), gettext("the study's key is destroyed"), None
    on = study.key_until.isoformat()
    return (
        gettext("the key is destroyed no later than %(day)s") % {"day": on},
        gettext("the study's key is destroyed, no later than %(day)s") % {"day": on},
        on,
    )
