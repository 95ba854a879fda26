"""Review of access: accounts, programs and links against studies, as of now."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from reports.accounts.access_models import ApiToken, ShareLink
from reports.studies.grant_models import StudyGrant, last_moment
from reports.studies.models import Study
from reports.studies.policies import OPENERS, SEES_ALL, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A role that an account can use in a study, and its last day (UTC); None = no end."""

    role: Role
    until: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account with all that decides about what it sees; `rights` are by the key of a study.

    A deactivated account keeps its roles and grants, and has no rights.
    """

    user: User
    roles: tuple[Role, ...]
    grants: tuple[StudyGrant, ...]
    rights: dict[int, tuple[Right, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A token or share link that opens a study now.

    `until` is its own end, or that of its maker's grant, if earlier.
    """

    kind: str  # "token", "link"
    name: str
    maker: User
    study: Study
    report: str  # of a link: its indicator; empty: all of the study
    is_locked: bool  # a link that asks for a password
    until: datetime
    last_used: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """`accounts` see at least one of `studies`, `blind` see none of them."""

    studies: tuple[Study, ...]
    accounts: tuple[Account, ...]
    blind: tuple[Account, ...]
    openings: tuple[Opening, ...]


def access_matrix(studies: Iterable[Study]) -> Matrix:
    """Return the readers of these studies; the number of queries does not depend on the number of rows."""
    among = tuple(studies)
    accounts = accounts_with_rights(User.objects.filter(is_active=True), studies=among)
    return Matrix(
        studies=among,
        accounts=tuple(each for each in accounts if any(each.rights.values())),
        blind=tuple(each for each in accounts if not any(each.rights.values())),
        openings=tuple(_openings(accounts, among)),
    )


def accounts_with_rights(users: QuerySet[User], *, studies: Sequence[Study]) -> list[Account]:
    """Accounts by name, with what they may do in each of these studies."""
    found = users.order_by("username").prefetch_related("groups", "study_grants__study")
    return [_account(user, studies=studies) for user in found]


def _account(user: User, *, studies: Sequence[Study]) -> Account:
    names = {group.name for group in user.groups.all()}
    roles = tuple(role for role in Role if role in names)
    in_use = roles if user.is_active else ()
    grants = tuple(user.study_grants.all())
    return Account(
        user=user,
        roles=roles,
        grants=grants,
        rights={study.pk: tuple(_rights(in_use, grants, study_id=study.pk)) for study in studies},
    )


def _rights(roles: Collection[Role], grants: Collection[StudyGrant], *, study_id: int) -> Iterable[Right]:
    here = [each for each in grants if each.study_id in (None, study_id) and each.is_in_force]
    for role in roles:
        if role in SEES_ALL:
            yield Right(role=role, until=None)
        elif here:
            # Of two grants the one that lasts longer counts.
            ends = [each.until for each in here if each.until is not None]
            yield Right(role=role, until=max(ends) if len(ends) == len(here) else None)


def _openings(accounts: Sequence[Account], studies: Sequence[Study]) -> Iterable[Opening]:
    by_key, wanted = {each.user.pk: each for each in accounts}, {study.pk: study for study in studies}
    now = timezone.now()
    is_open = Q(revoked_at=None, expires_at__gt=now)
    for token in ApiToken.objects.filter(is_open):
        account = by_key.get(token.owner_id)
        for study_id in wanted if token.study_id is None else wanted.keys() & {token.study_id}:
            yield from _opening(token, account, wanted[study_id], name=token.name, last=token.last_used_at)
    links = ShareLink.objects.filter(is_open, indicator__study__in=wanted).select_related("indicator")
    for link in links.annotate(last_view=Max("views__at", filter=Q(views__is_granted=True))):
        study = wanted[link.indicator.study_id]
        yield from _opening(link, by_key.get(link.created_by_id), study, name=link.note, last=link.last_view)


def _opening(
    found: ApiToken | ShareLink, account: Account | None, study: Study, *, name: str, last: datetime | None
) -> Iterable[Opening]:
    link = found if isinstance(found, ShareLink) else None
    until = _until(found.expires_at, account, study)
    if account is not None and until is not None:
        yield Opening(
            kind="link" if link else "token", name=name, maker=account.user, study=study,
            report=report_name(link) if link else "", is_locked=bool(link and link.password),
            until=until, last_used=last,
        )  # fmt: skip


def report_name(link: ShareLink) -> str:
    """Name of what a share link shows."""
    if link.is_of_slots:
        return gettext("Presence by time")
    if link.is_of_board:
        return gettext("Board")
    if link.is_of_forecast and link.report:
        return gettext("%(name)s: forecast") % {"name": link.report.shown_name}
    if link.is_of_forecast:
        return gettext("Forecast")
    return link.report.shown_name if link.report else gettext("All people")


def _until(expires_at: datetime, account: Account | None, study: Study) -> datetime | None:
    """Return the end of what an account has opened; None if its maker may no longer open this study."""
    rights = [] if account is None else [each for each in account.rights[study.pk] if each.role in OPENERS]
    if not rights:
        return None
    ends = [last_moment(each.until) for each in rights if each.until is not None]
    return expires_at if len(ends) < len(rights) else min(expires_at, max(ends))
