"""Share links: made and revoked by readers, opened by people without an account."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.db.models import Count, Max, Q
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reports.accounts.access import account, indicator_or_404, openers_only
from reports.accounts.access_models import ShareLink
from reports.accounts.matrix import report_name
from reports.base import formats
from reports.estimates.options import ReportOptions
from reports.estimates.picker import requested_window, window_query, window_title
from reports.estimates.queries import Window, WindowError, visitor_unions
from reports.pages.events import indicator_context, shared_query
from reports.pages.indicator import window_context
from reports.privacy.plain_texts import plain_privacy
from reports.sharing import actions as access
from reports.sharing.boards import asked_board, board_in, board_of, is_board, shared_board
from reports.sharing.crosstabs import asked_crosstab, is_crosstab, shared_crosstab
from reports.sharing.forecasts import asked_forecast, is_forecast, shared_forecast
from reports.sharing.presence import asked_presence, is_presence, shared_presence
from reports.sharing.revoking import revoke
from reports.sharing.scenarios import address_of, asked_scenario, is_scenario, shared_scenario
from reports.studies.models import Indicator
from reports.studies.policies import OPENERS, Role, roles_of, study_for
from reports.studies.texts import crumbs_to

NO_ROBOTS = "noindex, nofollow, noarchive"
COOKIE = "shared_report"
COOKIE_SALT = "reports.share"
COOKIE_AGE_S = 3600


class ShareForm(forms.Form):
    """Form of a share link: recipient, validity, password."""

    note = forms.CharField(
        label=_("Recipient"),
        max_length=access.NAME_MAX,
        required=False,
        help_text=_("Optional. Only you and administrators can see the recipient."),
    )
    days = forms.IntegerField(
        label=_("Valid for (days)"), min_value=1, max_value=access.SHARE_DAYS_MAX, initial=30
    )
    origins = forms.CharField(
        label=_("Sites that may embed the shared page"),
        max_length=access.ORIGINS_LENGTH_MAX,
        required=False,
        help_text=_(
            "Optional. Enter addresses such as https://www.example.org, separated by spaces. Only these "
            "sites can show the shared page in a frame."
        ),
    )
    password = forms.CharField(
        label=_("Password"),
        required=False,
        max_length=128,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_(
            "At least 8 characters. Send the password separately from the link. Leave empty for no password."
        ),
    )


class PasswordForm(forms.Form):
    """Password that opens a shared report."""

    password = forms.CharField(
        label=_("Password"),
        max_length=128,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )


@require_safe
@openers_only
def shares(request: HttpRequest) -> HttpResponse:
    """The links that were made, how often each was opened, and a way to end it."""
    user = account(request)
    refused = Count("views", filter=Q(views__is_granted=False))
    last = Max("views__at", filter=Q(views__is_granted=True))
    links = access.links_of(user).annotate(n_refused=refused, last_view=last)
    context = {
        "rows": [
            {
                "link": link,
                "title": formats.window_title(link.first_day, link.last_day),
                "name": report_name(link),
                "address": address_of(link.query, link.indicator),
                "state": _state_of(link),
            }
            for link in links
        ],
        "log_days": settings.MOBILITY_SHARE_LOG_DAYS,
        "sees_all": Role.ADMINISTRATOR in roles_of(user),
        "crumbs": crumbs_to(),
    }
    return render(request, "sharing/shares.html", context)


def _state_of(link: ShareLink) -> str:
    state = access.state_of(link, maker=link.created_by, study_id=link.indicator.study_id)
    return "suspended" if state == "valid" and link.is_of_board and board_of(link) is None else state


@require_http_methods(["GET", "POST"])
@openers_only
def new_share(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Make a link to the report that the address names; the link is shown this once."""
    study = study_for(request.user, slug, *OPENERS)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window, query = _asked(request, indicator)
    except WindowError as error:
        messages.error(request, str(error))
        return redirect("reports:indicator", slug, indicator_slug)
    form, token = ShareForm(), ""
    if request.method == "POST":
        form = ShareForm(request.POST)
        if form.is_valid():
            token = _made(request, form, indicator, window, query=query)
    board = board_in(QueryDict(query), study, reader=request.user)
    context = {
        "study": study,
        "board": board,
        "name": board.name if board else report_name(ShareLink(indicator=indicator, query=query)),
        "window_title": window_title(study, window),
        "address": address_of(query, indicator),
        "form": form,
        **(_addresses(request, token, is_framed=bool(form.cleaned_data["origins"].strip())) if token else {}),
        "crumbs": crumbs_to(study),
    }
    return render(request, "sharing/share_new.html", context)


@require_POST
@openers_only
def revoke_share(request: HttpRequest, link_id: int) -> HttpResponse:
    """Close a link permanently."""
    link = get_object_or_404(access.links_of(account(request)), pk=link_id)
    revoke(link, actor=account(request).get_username())
    messages.success(request, gettext("The link was revoked and no longer shows anything."))
    return redirect("access:shares")


@require_safe
def embedded(request: HttpRequest, token: str) -> HttpResponse:
    """The report behind a link in a frame of the sites that the link names; it sets no cookie."""
    link = access.link_of(token)
    if link is None or not link.origins:
        response = render(request, "sharing/share_ended.html", {"is_embedded": True}, status=404)
    elif request.method == "HEAD":
        response = HttpResponse()
    else:
        access.note_view(link)
        template, context = _contents(link)
        response = render(request, template, context | {"is_embedded": True})
    if link is not None and link.origins:
        changed: Any = response
        changed._csp_replace = {"frame-ancestors": link.origins.split()}
        changed.xframe_options_exempt = True
    response["X-Robots-Tag"] = NO_ROBOTS
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """The report behind a link, and nothing else. Wrong, expired and revoked links look the same.

    HEAD computes, counts and writes nothing. Search engines are asked to leave the page alone.
    """
    response = _shared(request, token)
    response["X-Robots-Tag"] = NO_ROBOTS
    return response


def _shared(request: HttpRequest, token: str) -> HttpResponse:
    link = access.link_of(token)
    if request.method == "HEAD":
        return HttpResponse(status=404 if link is None else 200)
    if link is None:
        return render(request, "sharing/share_ended.html", status=404)
    if link.password and not _knows_password(request, link):
        return _ask_password(request, link)
    access.note_view(link)
    return render(request, *_contents(link))


def _contents(link: ShareLink) -> tuple[str, dict[str, Any]]:
    """Template and context of what a link shows, computed now."""
    query = QueryDict(link.query)
    if link.is_of_board:
        return "sharing/share_board.html", shared_board(link)
    if link.is_of_slots:
        return "sharing/share_presence.html", shared_presence(link)
    if is_crosstab(query):
        return "sharing/share_crosstab.html", shared_crosstab(link)
    if link.is_of_forecast:
        return "sharing/share_forecast.html", shared_forecast(link)
    if is_scenario(query):
        return "sharing/share_scenario.html", shared_scenario(link)
    if link.indicator.study.of_events:
        return "sharing/share_events.html", _periods(link)
    return "sharing/share.html", _report(link)


def _periods(link: ShareLink) -> dict[str, Any]:
    """Return the periods of an indicator of events, without ways to other pages."""
    return indicator_context(link.indicator, QueryDict(link.query)) | {"link": link, "is_shared": True}


def _report(link: ShareLink) -> dict[str, Any]:
    """Return the page of the report, without its ways to other pages."""
    indicator = link.indicator
    study = indicator.study
    window = Window(study.day_of(link.first_day), study.day_of(link.last_day))
    options = ReportOptions.from_query(QueryDict(link.query))
    context = window_context(indicator, window, visitors=visitor_unions(study), options=options)
    if context.get("protection"):
        context |= plain_privacy(context["report"].plan, [indicator.slug])
    return context | {
        "options": options,
        "study": study,
        "indicator": indicator,
        "link": link,
        "is_shared": True,
    }


def _ask_password(request: HttpRequest, link: ShareLink) -> HttpResponse:
    form = PasswordForm(request.POST if request.method == "POST" else None)
    status = 200
    if form.is_bound and form.is_valid():
        if access.is_password(link, form.cleaned_data["password"]):
            response = redirect(request.path)
            _remember(response, request, link)
            return response
        status = 403
        if access.may_try(link):
            form.add_error("password", gettext("The password is wrong."))
        else:
            status = 429
            form.add_error("password", gettext("Too many wrong passwords. Try again in an hour."))
    return render(request, "sharing/share_password.html", {"form": form}, status=status)


def _remember(response: HttpResponse, request: HttpRequest, link: ShareLink) -> None:
    """The browser may open this one address for an hour."""
    response.set_cookie(
        COOKIE,
        signing.dumps(access.proof_of(link), salt=COOKIE_SALT),
        max_age=COOKIE_AGE_S,
        path=request.path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _knows_password(request: HttpRequest, link: ShareLink) -> bool:
    try:
        proof = signing.loads(request.COOKIES.get(COOKIE, ""), salt=COOKIE_SALT, max_age=COOKIE_AGE_S)
    except signing.BadSignature:
        return False
    return bool(proof == access.proof_of(link))


def _made(request: HttpRequest, form: ShareForm, indicator: Indicator, window: Window, *, query: str) -> str:
    """End of the address of a new link; empty when it could not be made, and the form says why."""
    try:
        _link, text = access.create_link(
            indicator, window, query=query, **form.cleaned_data, by=account(request)
        )
    except access.AccessError as error:
        form.add_error(None, str(error))
        return ""
    return text


def _addresses(request: HttpRequest, token: str, *, is_framed: bool) -> dict[str, str]:
    """Whole addresses of a new link: of its page, and of the page for frames."""
    pages = {"share_url": "access:shared"} | ({"embed_url": "access:embedded"} if is_framed else {})
    return {name: request.build_absolute_uri(reverse(page, args=[token])) for name, page in pages.items()}


def _asked(request: HttpRequest, indicator: Indicator) -> tuple[Window, str]:
    """Days of the report or scenario that is shown now, and the parameters that name it; or WindowError."""
    if is_board(request.GET):
        board = board_in(request.GET, indicator.study, reader=account(request))
        return asked_board(request.GET, indicator, board=board)
    if indicator.study.of_events:
        return Window(1, indicator.study.days), shared_query(request.GET)
    if is_presence(request.GET):
        return asked_presence(request.GET, indicator.study)
    if is_crosstab(request.GET):
        return asked_crosstab(request.GET, indicator)
    if is_forecast(request.GET):
        return asked_forecast(request.GET, indicator)
    if is_scenario(request.GET):
        return asked_scenario(request.GET, indicator)
    study = indicator.study
    if indicator.max_moves is not None:  # moves have no report
        raise Http404
    window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
    return window, ReportOptions.from_query(request.GET).query(window_query(study, window))
