"""Entries of the ledger in plain words."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from reports.accounts.grants import ALL_STUDIES
from reports.accounts.texts import ROLE_WORDS
from reports.base.formats import day_title, number, with_decimal_sign
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.privacy.budget.texts import period_words, unit_words
from reports.studies.policies import Role

Facts = Mapping[str, Any]

KIND_WORDS = {
    LedgerKind.PLAN_DRAFTED: _("Plan drafted"),
    LedgerKind.PLAN_REVIEWED: _("Plan approved"),
    LedgerKind.PLAN_PUBLISHED: _("Plan published"),
    LedgerKind.PLAN_SUPERSEDED: _("Plan replaced"),
    LedgerKind.PLAN_WITHDRAWN: _("Plan withdrawn"),
    LedgerKind.STUDY_CREATED: _("Study created"),
    LedgerKind.STUDY_CLOSED: _("Study closed"),
    LedgerKind.STUDY_DELETED: _("Study deleted"),
    LedgerKind.BATCH_ENDED: _("Batch finished"),
    LedgerKind.DAY_UNDO: _("Request to undo the uploads for a published day"),
    LedgerKind.TABLE_SANITISED: _("Sanitised table"),
    LedgerKind.PUBLICATION_APPLIED: _("Totals published"),
    LedgerKind.KEY_CREATED: _("Key created"),
    LedgerKind.KEY_DESTROYED: _("Key destroyed"),
    LedgerKind.EXPORT_MADE: _("Data exported"),
    LedgerKind.SHARE_CREATED: _("Share link created"),
    LedgerKind.SHARE_OPENED: _("Share link opened"),
    LedgerKind.SHARE_REVOKED: _("Share link revoked"),
    LedgerKind.BOARD_CHANGED: _("Board changed"),
    LedgerKind.DIGEST: _("Board by e-mail"),
    LedgerKind.LAYERS_CHANGED: _("Base layers of maps"),
    LedgerKind.TOKEN_CREATED: _("Token created"),
    LedgerKind.TOKEN_REVOKED: _("Token revoked"),
    LedgerKind.SIGN_IN_SUCCEEDED: _("Signed in"),
    LedgerKind.SIGN_IN_FAILED: _("Sign-in failed"),
    LedgerKind.SIGNED_OUT: _("Signed out"),
    LedgerKind.ACCESS_CHANGED: _("Access rights changed"),
    LedgerKind.BUDGET_CHANGED: _("Budget changed"),
    LedgerKind.SENDER_REGISTERED: _("Sender registered"),
    LedgerKind.DELTA_RECEIVED: _("Totals received"),
    LedgerKind.BACKUP_MADE: _("Backup created"),
    LedgerKind.BACKUP_RESTORED: _("Backup restored"),
    LedgerKind.KEYS_ESCROWED: _("Keys placed in escrow"),
    LedgerKind.KEYS_RESTORED: _("Keys restored"),
}
CHANGES = {
    "created": _("Account %(account)s was created."),
    "roles": _("The roles of account %(account)s were changed."),
    "deactivated": _("Account %(account)s was deactivated."),
    "activated": _("Account %(account)s was reactivated."),
    "password replaced": _("The password of account %(account)s was reset."),
    "password changed": _("Account %(account)s changed its own password."),
    "second factor added": _("A second factor was added to account %(account)s."),
    "second factor removed": _("A second factor was removed from account %(account)s."),
    "granted": _("Account %(account)s was given access to %(studies)s."),
    "withdrawn": _("Account %(account)s lost access to %(studies)s."),
    "revoked": _("Sender %(sender)s was revoked."),
    "adopted": _("Sender %(sender)s now delivers the data for this study."),
}
BOARDS = {
    "created": _("Board %(board)s was created."),
    "shared": _("Board %(board)s was shared with all readers of the study."),
    "unshared": _("Board %(board)s is no longer shared with the readers of the study."),
    "removed": _("Board %(board)s was removed."),
}
DIGESTS = {
    "created": _("E-mail delivery of board %(board)s was set up. Addresses: %(n)s."),
    "changed": _("E-mail delivery of board %(board)s was changed. Addresses: %(n)s."),
    "sent": _("Board %(board)s was sent by e-mail. Number of addresses: %(n)s."),
    "ended": _("E-mail delivery of board %(board)s was stopped."),
}
CAPS = {
    "proposed": _("A higher epsilon cap was requested. A second person must confirm it."),
    "set": _("An epsilon cap was set."),
    "confirmed": _("A second person confirmed a higher epsilon cap."),
    "refused": _("A higher epsilon cap was refused."),
}
API_WORDS = {
    "study": pgettext_lazy("what the API gave", "study"),
    "statement": pgettext_lazy("what the API gave", "privacy statement"),
    "indicators": pgettext_lazy("what the API gave", "indicators"),
    "indicator": pgettext_lazy("what the API gave", "indicator"),
    "estimates": pgettext_lazy("what the API gave", "estimates"),
    "visitors": pgettext_lazy("what the API gave", "visitors"),
    "days": pgettext_lazy("what the API gave", "days"),
    "scenario": pgettext_lazy("what the API gave", "a combination of days"),
    "scenario_categories": pgettext_lazy("what the API gave", "a combination of days, by category"),
    "windows": pgettext_lazy("what the API gave", "windows"),
    "periods": pgettext_lazy("what the API gave", "events by period"),
    "series": pgettext_lazy("what the API gave", "events by period and category"),
    "next_period": pgettext_lazy("what the API gave", "forecast of events"),
    "presence": pgettext_lazy("what the API gave", "presence by time slot"),
    "presence_forecast": pgettext_lazy("what the API gave", "forecast of presence by time slot"),
    "forecast": pgettext_lazy("what the API gave", "forecast of daily visitors"),
    "smoothed": pgettext_lazy("what the API gave", "smoothed shares"),
    "queries": pgettext_lazy("what the API gave", "share of selected categories"),
    "association": pgettext_lazy("what the API gave", "association of two indicators"),
    "change": pgettext_lazy("what the API gave", "test of two date ranges"),
    "flows": pgettext_lazy("what the API gave", "flows"),
    "visited": pgettext_lazy("what the API gave", "visited zones"),
    "number": pgettext_lazy("what the API gave", "mean and quantiles"),
    "model": pgettext_lazy("what the API gave", "modelled three-way table"),
    "means": pgettext_lazy("what the API gave", "means by category"),
    "extrapolation": pgettext_lazy("what the API gave", "total scaled by category"),
    "classes": pgettext_lazy("what the API gave", "shares by class"),
    "features": pgettext_lazy("what the API gave", "description of the map service"),
    "conformance": pgettext_lazy("what the API gave", "standards supported by the map service"),
    "collections": pgettext_lazy("what the API gave", "list of maps"),
    "collection": pgettext_lazy("what the API gave", "description of a map"),
    "items": pgettext_lazy("what the API gave", "zones of a map"),
    "item": pgettext_lazy("what the API gave", "one zone of a map"),
    "places": pgettext_lazy("what the API gave", "places"),
    "places_grid": pgettext_lazy("what the API gave", "places on the grid"),
}
# Batches without a file, by their kind.
WITHOUT_FILE = {
    "void_day": _("Undoing of a day."),
    "close_days": _("Closing of days."),
    "close_slots": _("Closing of time slots."),
}
BATCH_STATES = {"done": _("Done."), "failed": _("Failed."), "cancelled": _("Cancelled.")}


def kind_words(kind: str) -> str:
    """Return the name of the kind of entry; one of a later version keeps its code."""
    return str(KIND_WORDS.get(kind, kind))  # type: ignore[call-overload]


def entry_words(entry: LedgerEntry) -> str:
    """Describe an entry, beyond its kind; empty where the kind says it all."""
    words = _SENTENCES.get(entry.kind)
    return "" if words is None else words(entry.facts)


def fact_lines(facts: Facts, *, prefix: str = "") -> list[tuple[str, str]]:
    """Facts by name as they are kept: "rows_rejected / bad_timestamp", "12"."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines += fact_lines(value, prefix=f"{prefix}{name} / ") or [(f"{prefix}{name}", gettext("none"))]
        elif isinstance(value, bool):
            lines.append((f"{prefix}{name}", gettext("yes") if value else gettext("no")))
        elif isinstance(value, list):
            lines.append((f"{prefix}{name}", ", ".join(str(part) for part in value) or gettext("none")))
        else:
            lines.append((f"{prefix}{name}", gettext("none") if value in (None, "") else str(value)))
    return lines


def _batch(facts: Facts) -> str:
    without_file: str | Promise | None = WITHOUT_FILE.get(facts.get("kind", ""))
    if facts.get("kind") == "void_day" and "day" in facts:
        without_file = gettext("Undoing of %(day)s.") % {"day": day_title(date.fromisoformat(facts["day"]))}
    parts = [str(without_file or ""), str(BATCH_STATES.get(facts.get("state", ""), ""))]
    if facts.get("counts_withheld"):
        parts.append(gettext("Counts are omitted because they could reveal information about individuals."))
    if "duplicate_of" in facts:
        parts.append(gettext("The same file had already been processed."))
    if facts.get("only_checked"):
        parts.append(gettext("This was only a check; nothing was published."))
    if "rows_read" in facts:
        parts.append(_rows(facts))
    if "reports" in facts:
        n = facts["reports"]
        parts.append(ngettext("%(n)s answer added.", "%(n)s answers added.", n) % {"n": number(n)})
    if without_file is None:
        parts.append(_left(facts))
    return " ".join(part for part in parts if part)


def _rows(facts: Facts) -> str:
    counts = {
        "read": number(facts["rows_read"]),
        "accepted": number(facts["rows_accepted"]),
        "ignored": number(sum(facts["rows_ignored"].values())),
        "rejected": number(sum(facts["rows_rejected"].values())),
    }
    text = ngettext(
        "%(read)s row read: %(accepted)s accepted, %(ignored)s ignored, %(rejected)s rejected.",
        "%(read)s rows read: %(accepted)s accepted, %(ignored)s ignored, %(rejected)s rejected.",
        facts["rows_read"],
    )
    return text % counts


def _left(facts: Facts) -> str:
    left, key = facts.get("staged_bytes_left"), facts.get("key_left")
    if left is None or key is None:
        return ""
    if left == 0 and not key:
        return gettext("No data from the raw file remains, and its key has been destroyed.")
    if key:
        return gettext("The key of the raw file could not be destroyed. Check the keystore.")
    text = ngettext(
        "%(n)s byte of encrypted data remains, but its key has been destroyed.",
        "%(n)s bytes of encrypted data remain, but their key has been destroyed.",
        left,
    )
    return text % {"n": number(left)}


def _plan(facts: Facts) -> str:
    known = facts.get("version") or facts.get("plan_version")
    words = "" if known is None else gettext("Version %(version)s.") % {"version": known}
    return f"{words} {_plan_hash(facts)}".strip()


def _plan_hash(facts: Facts) -> str:
    start = str(facts.get("plan_sha256") or "")[:12]
    return gettext("Plan fingerprint: %(start)s…") % {"start": start} if start else ""


def _study(facts: Facts) -> str:
    if "mechanism" not in facts:
        return _plan(facts)
    if "epsilon_profile" in facts:
        text = gettext("Mechanism %(mechanism)s.") + " "
        text += gettext("Certified epsilon: %(attribute)s per attribute, %(profile)s per profile") + "."
    else:  # entries of earlier releases have what the study file asked for, not what its days add up to
        text = gettext("Mechanism %(mechanism)s, epsilon %(epsilon)s in the study file, for %(unit)s.")
    words = {
        "mechanism": facts["mechanism"],
        "epsilon": with_decimal_sign(str(facts.get("epsilon"))),
        "unit": _known(unit_words, facts.get("unit")),
        "profile": with_decimal_sign(str(facts.get("epsilon_profile"))),
        "attribute": with_decimal_sign(str(facts.get("epsilon_attribute"))),
    }
    return f"{text % words} {_plan_hash(facts)}"


def _closed(facts: Facts) -> str:
    start = str(facts.get("certificate_sha256") or "")[:12]
    words = gettext("Certificate fingerprint: %(start)s…") % {"start": start} if start else ""
    lost = (
        gettext("The key had already been lost, so there was nothing to destroy.")
        if facts.get("key_was_lost")
        else ""
    )
    return f"{words} {lost}".strip()


def _key(facts: Facts) -> str:
    if facts.get("key_left"):
        return gettext("Key %(key)s is still in the keystore.") % {"key": facts.get("key")}
    return gettext("Key %(key)s.") % {"key": facts.get("key", "")}


def _export(facts: Facts) -> str:
    if facts.get("way") == "api":
        asked = str(facts.get("what") or "")
        what = f"{API_WORDS.get(asked, asked)} {facts.get('indicator') or ''}".strip()
        how = (
            gettext("Data read through the API: %(what)s.")
            if "token" in facts
            else gettext("Data read through the API from a browser: %(what)s.")
        )
        return f"{how % {'what': what}} {_days(facts)}".strip()
    if facts.get("way") == "command":
        is_people = facts.get("format") == "population"
        everything = gettext("synthetic population") if is_people else gettext("all indicators")
        what = facts.get("indicator") or everything
        text = gettext("Exported on the server: %(what)s.") % {"what": what}
        return f"{text} {_days(facts)}".strip()
    return gettext("File %(file)s.") % {"file": facts.get("file", "")}


def _days(facts: Facts) -> str:
    first, last = facts.get("from") or facts.get("first_day"), facts.get("to") or facts.get("last_day")
    if not first and not last:
        return ""
    if not first or not last or first == last:
        return f"{first or last}."
    return gettext("%(first)s to %(last)s.") % {"first": first, "last": last}


UNDOS = {
    "asked": _("A request was made to undo the uploads for %(day)s. A second person must approve it."),
    "approved": _("The request to undo the uploads for %(day)s was approved."),
    "refused": _("The request to undo the uploads for %(day)s was refused."),
    "withdrawn": _("The request to undo the uploads for %(day)s was withdrawn."),
}


def _undo(facts: Facts) -> str:
    text = UNDOS.get(str(facts.get("what")))
    return "" if text is None else str(text) % {"day": facts.get("day")}


TABLES = {
    "asked": _(
        "Someone asked to release a table with noisy places. A second person must approve the release."
    ),
    "approved": _("The release of a table with noisy places was approved. The table can be written once."),
    "refused": _("The release of a table with noisy places was refused."),
    "written": _("A table with noisy places was written. Rows: %(rows)s."),
}


def _table(facts: Facts) -> str:
    text = TABLES.get(str(facts.get("what")))
    return "" if text is None else str(text) % {"rows": number(facts.get("rows") or 0)}


def _board(facts: Facts) -> str:
    text = BOARDS.get(str(facts.get("change")))
    return "" if text is None else str(text) % {"board": facts.get("board")}


def _digest(facts: Facts) -> str:
    text = DIGESTS.get(str(facts.get("change")))
    values = {"board": facts.get("board"), "n": facts.get("addresses")}
    return "" if text is None else str(text) % values


def _layers(facts: Facts) -> str:
    return gettext("Base layers were replaced. Layers: %(n)s.") % {"n": facts.get("layers")}


def _share(facts: Facts) -> str:
    text = gettext("Share link %(link)s to %(indicator)s.")
    shown = {"presence": API_WORDS["presence"], "forecast": gettext("Forecast")}
    shown["board"] = gettext("board %(board)s") % {"board": facts.get("board")}
    of_all = shown.get(str(facts.get("what")), gettext("scenarios for all people"))
    report = facts.get("indicator") or of_all
    words = text % {"link": facts.get("link"), "indicator": report}
    until = gettext("Valid until %(day)s.") % {"day": facts["until"]} if facts.get("until") else ""
    locked = gettext("Password protected.") if facts.get("password") else ""
    sites = facts.get("origins")
    framed = (
        gettext("The shared page can be embedded on %(sites)s.") % {"sites": ", ".join(sites)}
        if sites
        else ""
    )
    times = facts.get("times")
    read = (
        ngettext("The link was opened %(n)d more time.", "The link was opened %(n)d more times.", times)
        % {"n": times}
        if times
        else ""
    )
    return " ".join(part for part in (words, _days(facts), until, locked, framed, read) if part)


def _token(facts: Facts) -> str:
    text = (
        gettext("Token %(token)s, for sending files.")
        if facts.get("sends")
        else gettext("Token %(token)s, for read access.")
    )
    until = gettext("Valid until %(day)s.") % {"day": facts["until"]} if facts.get("until") else ""
    return f"{text % {'token': facts.get('token')}} {until}".strip()


def _failed(facts: Facts) -> str:
    if facts.get("account_exists") is False:
        return gettext("No such account exists. The name that was entered is not stored.")
    return ""


def _access(facts: Facts) -> str:
    text = CHANGES.get(str(facts.get("change")))
    names = {name: facts.get(name, "") for name in ("account", "sender")}
    is_all = facts.get("studies") == ALL_STUDIES
    names["studies"] = gettext("all studies") if is_all else facts.get("studies", "")
    words = "" if text is None else str(text) % names
    if "roles" in facts:
        named = [str(ROLE_WORDS[Role(role)]) if role in set(Role) else str(role) for role in facts["roles"]]
        words += " " + gettext("Roles: %(roles)s.") % {"roles": ", ".join(named) or gettext("none")}
    if facts.get("until"):
        words += " " + gettext("Valid until %(day)s.") % {"day": facts["until"]}
    return words.strip()


def _budget(facts: Facts) -> str:
    text = str(CAPS.get(str(facts.get("what")), ""))
    cap = facts.get("epsilon")
    epsilon = gettext("no cap")
    if cap is not None:
        epsilon = gettext("epsilon %(epsilon)s") % {"epsilon": with_decimal_sign(str(cap))}
    whose = gettext("Population %(population)s, %(unit)s, %(period)s: %(epsilon)s.")
    words = {
        "population": facts.get("population"),
        "unit": _known(unit_words, facts.get("unit")),
        "period": _known(period_words, facts.get("period")),
        "epsilon": epsilon,
    }
    return f"{text} {whose % words}".strip()


def _known(words: Callable[[str], str], name: object) -> str:
    """A name in words; one of a later version as it is called there."""
    try:
        return words(str(name))
    except ValueError:
        return str(name)


def _sender(facts: Facts) -> str:
    return gettext("Sender %(sender)s.") % {"sender": facts.get("sender", "")}


def _restored(facts: Facts) -> str:
    return gettext("A backup from %(day)s was restored. Later ledger entries were lost.") % {
        "day": str(facts.get("backup_of", ""))[:10]
    }


def _keys(facts: Facts) -> str:
    keys = facts.get("keys") or []
    return gettext("Keys: %(keys)s.") % {"keys": ", ".join(str(key) for key in keys) or gettext("none")}


def _publication(facts: Facts) -> str:
    return gettext("Publication %(id)s…") % {"id": str(facts.get("publication", ""))[:8]}


_SENTENCES: dict[str, Callable[[Facts], str]] = {
    LedgerKind.PLAN_DRAFTED: _plan,
    LedgerKind.PLAN_REVIEWED: _plan,
    LedgerKind.PLAN_PUBLISHED: _plan,
    LedgerKind.PLAN_SUPERSEDED: _plan,
    LedgerKind.PLAN_WITHDRAWN: _plan,
    LedgerKind.STUDY_CREATED: _study,
    LedgerKind.STUDY_CLOSED: _closed,
    LedgerKind.BATCH_ENDED: _batch,
    LedgerKind.PUBLICATION_APPLIED: _publication,
    LedgerKind.DELTA_RECEIVED: _publication,
    LedgerKind.KEY_CREATED: _key,
    LedgerKind.KEY_DESTROYED: _key,
    LedgerKind.EXPORT_MADE: _export,
    LedgerKind.DAY_UNDO: _undo,
    LedgerKind.TABLE_SANITISED: _table,
    LedgerKind.SHARE_CREATED: _share,
    LedgerKind.SHARE_OPENED: _share,
    LedgerKind.SHARE_REVOKED: _share,
    LedgerKind.BOARD_CHANGED: _board,
    LedgerKind.DIGEST: _digest,
    LedgerKind.LAYERS_CHANGED: _layers,
    LedgerKind.TOKEN_CREATED: _token,
    LedgerKind.TOKEN_REVOKED: _token,
    LedgerKind.SIGN_IN_FAILED: _failed,
    LedgerKind.ACCESS_CHANGED: _access,
    LedgerKind.BUDGET_CHANGED: _budget,
    LedgerKind.SENDER_REGISTERED: _sender,
    LedgerKind.BACKUP_RESTORED: _restored,
    LedgerKind.KEYS_ESCROWED: _keys,
    LedgerKind.KEYS_RESTORED: _keys,
}
