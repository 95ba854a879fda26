"""Files that pages hand out are noted in the ledger."""

from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from reports.base.attachments import name_of
from reports.ledger.chain import Json
from reports.ledger.handouts import record_file
from reports.studies.models import Study

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
# Of addresses; those of comparisons name both sides.
DAYS = ("from", "to", "with_from", "with_to")


def handed_out(view: View[P]) -> View[P]:
    """Note each file that the view answers with; its address names the study (`slug`).

    The header Link of the file leads to the study's privacy statement (RFC 8288).
    """

    @wraps(view)
    def noting(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code == 200 and request.method == "GET":
            facts: dict[str, Json] = {"way": "page", "file": name_of(response)}
            facts |= {name: request.GET[name] for name in DAYS if _is_day(request.GET.get(name, ""))}
            if Study.objects.filter(slug=request.GET.get("with", "")).exists():
                facts["with"] = request.GET["with"]
            statement = reverse("reports:statement_file", args=[kwargs["slug"]])
            response["Link"] = f'<{statement}>; rel="describedby"'
            record_file(study=str(kwargs["slug"]), by=request.user.get_username(), facts=facts)
        return response

    noted: Any = noting
    return noted  # type: ignore[no-any-return]


def _is_day(text: str) -> bool:
    """Return whether this is a date: nothing else that someone may have typed is kept."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2017-05-31")
