"""Opening reports to programs and to people without an account: tokens, share links, and saved views.

A token or link acts for the person who made it: it opens nothing while that person may not read.
"""

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.utils.translation import gettext

from reports.accounts.access_models import ApiToken, Opening, SavedView, ShareLink, ShareView
from reports.estimates.queries import Window
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.sharing.boards import board_of
from reports.sharing.revoking import link_facts
from reports.studies.models import Indicator, Study
from reports.studies.policies import OPENERS, Role, fetch_rights, is_open_to, may_open, roles_of
from reports.studies.studyfile.table import is_one_line

TOKEN_PREFIX = "mobility-read-"  # noqa: S105 - so that scanners of leaked secrets know what they have found
TOKEN_BYTES = 32
TOKEN_DAYS_MAX = 730
SHARE_DAYS_MAX = 366
PASSWORD_MIN = 8
NAME_MAX = 80
QUERY_MAX = 500
ADDRESS_MAX = 1000
ORIGINS_MAX = 5
ORIGINS_LENGTH_MAX = 500
# Without wildcards: each site is named.
ORIGIN = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?"
)
VIEWS_MAX = 100  # saved by one person
VIEW_LOGGED_EVERY = timedelta(hours=1)
USE_NOTED_EVERY = timedelta(minutes=1)  # a write for every answer would slow all readers
WRONG_PASSWORDS_MAX = 10  # within GUESSING_TIME, then no one may try
GUESSING_TIME = timedelta(hours=1)

Found = TypeVar("Found", bound=Opening)


class AccessError(ValueError):
    """A link or view cannot be made like that; the text is for the reader who asked."""


# --- tokens of programs -----------------------------------------------------------------------


@transaction.atomic
def create_token(*, name: str, days: int, study: Study | None, by: User) -> tuple[ApiToken, str]:
    """Make a token; its text is returned this once and kept nowhere.

    Parameters
    ----------
    name : which program it is for, 1 to 80 characters
    days : how long it is valid, 1 to 730
    study : what it opens; None = all studies that `by` may read, whenever it is used

    Raises
    ------
    AccessError : name or days out of range, or `by` may not open that
    """
    _check_opener(by, study)
    text = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = ApiToken.objects.create(
        owner=by,
        name=_named(name),
        study=study,
        digest=_digest(text),
        expires_at=_end(days, days_max=TOKEN_DAYS_MAX),
    )
    record(
        LedgerKind.TOKEN_CREATED,
        actor=by.get_username(),
        study=study.slug if study else "",
        facts={"token": str(token.pk), "until": token.expires_at.date().isoformat()},
    )
    return token, text


def token_of(text: str) -> ApiToken | None:
    """The valid token with this text, whose use is noted to the minute."""
    found = _opening(ApiToken.objects.select_related("owner"), text)
    if found is None:
        return None
    fetch_rights(found.owner)
    if not _opens(found.owner, found.study_id):
        return None
    now = timezone.now()
    if found.last_used_at is None or now - found.last_used_at > USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=found.pk).update(last_used_at=now)
    return found


def state_of(opening: Opening, *, maker: User, study_id: int | None) -> str:
    """ "valid", or why not: "revoked", "expired", "suspended" (its maker may no longer read that).

    Roles and grants of the maker were fetched already: no query for each row of a list.
    """
    if opening.revoked_at is not None:
        return "revoked"
    if not opening.is_valid:
        return "expired"
    if study_id is None:
        return "valid" if roles_of(maker) & OPENERS else "suspended"
    return "valid" if is_open_to(maker, study_id, *OPENERS) else "suspended"


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Tokens that a person may see and revoke, newest first: the own ones; an administrator sees all."""
    tokens = ApiToken.objects.select_related("owner", "study")
    tokens = tokens.prefetch_related("owner__groups", "owner__study_grants")
    return tokens if _sees_all(user) else tokens.filter(owner=user)


def links_of(user: User) -> QuerySet[ShareLink]:
    """Share links that a person may see and revoke, newest first: the own ones; an administrator sees all."""
    links = ShareLink.objects.select_related("created_by", "indicator__study")
    links = links.prefetch_related("created_by__groups", "created_by__study_grants")
    return links if _sees_all(user) else links.filter(created_by=user)


# --- share links ------------------------------------------------------------------------------


@transaction.atomic
def create_link(
    indicator: Indicator,
    window: Window,
    *,
    query: str,
    days: int,
    note: str,
    password: str,
    by: User,
    origins: str = "",
) -> tuple[ShareLink, str]:
    """Make a link to one report; the end of its address is returned this once and kept nowhere.

    Parameters
    ----------
    query : the query of the report's address; it names the window
    days : how long it is valid, 1 to 366
    note : for whom it is, up to 80 characters
    password : at least 8 characters, or empty: none is asked for
    origins : sites that may show the report in a frame, such as "https://example.org", separated by blanks

    Raises
    ------
    AccessError : something is out of range, or `by` may not open that
    """
    _check_opener(by, indicator.study)
    if password and len(password) < PASSWORD_MIN:
        raise AccessError(
            gettext("The password must have at least %(n)d characters, or be empty.") % {"n": PASSWORD_MIN}
        )
    sites = _checked_origins(origins)
    if sites and password:  # a frame keeps no cookie that could remember it
        raise AccessError(
            gettext(
                "A report with a password cannot be embedded. Leave either the password or the list of sites "
                "empty."
            )
        )
    if len(query) > QUERY_MAX:
        raise AccessError(gettext("The address of this report is too long to share."))
    text = secrets.token_urlsafe(TOKEN_BYTES)
    study = indicator.study
    link = ShareLink.objects.create(
        indicator=indicator,
        query=query,
        first_day=study.date_of(window.first_day),
        last_day=study.date_of(window.last_day),
        note=_named(note) if note.strip() else "",
        password=make_password(password) if password else "",
        origins=" ".join(sites),
        digest=_digest(text),
        created_by=by,
        expires_at=_end(days, days_max=SHARE_DAYS_MAX),
    )
    record(
        LedgerKind.SHARE_CREATED,
        actor=by.get_username(),
        study=study.slug,
        facts=link_facts(link)
        | {"until": link.expires_at.date().isoformat(), "password": bool(password)}
        | ({"origins": [*sites]} if sites else {}),
    )
    return link, text


def link_of(text: str) -> ShareLink | None:
    """The valid link whose address ends like this; None does not tell why there is none."""
    found = _opening(ShareLink.objects.select_related("created_by", "indicator__study"), text)
    if found is None or not _opens(found.created_by, found.indicator.study_id):
        return None
    if found.is_of_board and board_of(found) is None:
        return None
    return found


@transaction.atomic
def note_view(link: ShareLink) -> None:
    """Count that the shared report was shown; nothing of the visitor is kept.

    Readers without an account must not fill tables: the log has a row for an hour with readers, and the
    ledger an entry of the first reading; `record_reads` adds how many came after it.
    """
    links = ShareLink.objects.filter(pk=link.pk)
    links.update(reads=F("reads") + 1)
    lately = timezone.now() - VIEW_LOGGED_EVERY
    if not link.views.filter(is_granted=True, at__gt=lately).exists():
        ShareView.objects.create(link=link, is_granted=True)
    if links.filter(reads_recorded=0).update(reads_recorded=1):
        record(LedgerKind.SHARE_OPENED, study=link.indicator.study.slug, facts=link_facts(link))


def forget_old_views() -> int:
    """Remove views that are older than MOBILITY_SHARE_LOG_DAYS; how many. Links and tokens stay: who opened
    what to whom, and until when, is wanted in an audit.
    """
    until = timezone.now() - timedelta(days=settings.MOBILITY_SHARE_LOG_DAYS)
    return ShareView.objects.filter(at__lt=until).delete()[0]


def may_try(link: ShareLink) -> bool:
    """Return whether another password may be tried now."""
    since = timezone.now() - GUESSING_TIME
    return link.views.filter(is_granted=False, at__gt=since).count() < WRONG_PASSWORDS_MAX


@transaction.atomic
def is_password(link: ShareLink, password: str) -> bool:
    """Return whether the password is the link's; a wrong one is logged. False after too many tries."""
    # The lock makes guesses queue up: many at once count like many in a row.
    ShareLink.objects.select_for_update().get(pk=link.pk)
    if not may_try(link):
        return False
    if check_password(password, link.password):
        return True
    ShareView.objects.create(link=link, is_granted=False)
    return False


def proof_of(link: ShareLink) -> str:
    """Return a browser's proof that it knew the password; another password makes it worthless."""
    return _digest(f"{link.pk} {link.password}")


# --- saved views ------------------------------------------------------------------------------


def save_view(*, name: str, address: str, by: User) -> SavedView:
    """Keep the address of a report page under a name; the same name again replaces it.

    AccessError if the name is out of range, the address is none of a report page, or there are too many.
    """
    _check_opener(by)
    name = _named(name)
    if not is_report_address(address):
        raise AccessError(gettext("Only study pages can be saved as views."))
    others = SavedView.objects.filter(owner=by).exclude(name=name)
    if others.count() >= VIEWS_MAX:
        raise AccessError(
            gettext("You have already saved %(n)d views. Remove a view that you no longer need.")
            % {"n": VIEWS_MAX}
        )
    view, _ = SavedView.objects.update_or_create(owner=by, name=name, defaults={"address": address})
    return view


def forget_views_of_study(study: Study) -> None:
    """Remove the kept views of a study's pages: they lead nowhere when it is gone."""
    SavedView.objects.filter(address__startswith=reverse("reports:study", args=[study.slug])).delete()


def is_report_address(address: str) -> bool:
    """Return whether an address is a page of this site about a study: no file, no other site."""
    path = address.partition("?")[0]
    if len(address) > ADDRESS_MAX or not address.isprintable():
        return False
    try:
        match = resolve(path)  # finds nothing for another site: its address does not begin like ours
    except Resolver404:
        return False
    return match.app_name == "reports" and "file_format" not in match.kwargs and path.endswith("/")


# --- shared -----------------------------------------------------------------------------------


def _opening(openings: QuerySet[Found], text: str) -> Found | None:
    digest = _digest(text)
    # Anyone who measures how long this takes learns of digests, not of tokens.
    found = openings.filter(digest=digest).first()
    if found is None or not hmac.compare_digest(found.digest, digest) or not found.is_valid:
        return None
    return found


def _check_opener(user: User, study: Study | None = None) -> None:
    if not _opens(user, None if study is None else study.pk):
        raise AccessError(gettext("Only people who can read reports can share them."))


def _opens(maker: User, study_id: int | None) -> bool:
    """Return whether access given by a person is open now; None: studies must be looked up one by one."""
    if study_id is None:
        return may_open(maker)
    return is_open_to(maker, study_id, *OPENERS)


def _sees_all(user: User) -> bool:
    return Role.ADMINISTRATOR in roles_of(user)


def _checked_origins(text: str) -> list[str]:
    """Sites of a text, each once: scheme, host and port, as a content policy writes them."""
    found = list(dict.fromkeys(text.lower().split()))
    for each in found:
        if not ORIGIN.fullmatch(each):
            raise AccessError(
                gettext(
                    "Enter sites in the form https://www.example.org, without a path. “%(site)s” does "
                    "not have this form."
                )
                % {"site": each[:NAME_MAX]}
            )
    if len(found) > ORIGINS_MAX or len(" ".join(found)) > ORIGINS_LENGTH_MAX:
        raise AccessError(gettext("Enter at most %(n)d sites.") % {"n": ORIGINS_MAX})
    return found


def _named(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_MAX or not is_one_line(name):
        raise AccessError(gettext("A name must have 1 to %(n)d printable characters.") % {"n": NAME_MAX})
    return name


def _end(days: int, *, days_max: int) -> datetime:
    if not 1 <= days <= days_max:
        raise AccessError(
            gettext("Enter a validity period of 1 to %(max)d days, not %(days)d.")
            % {"max": days_max, "days": days}
        )
    return timezone.now() + timedelta(days=days)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
