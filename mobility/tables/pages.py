"""Tables that wait for a second person: what the page of a study shows, and the decision."""

import math
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from mobility.base.errors import MobilityError
from mobility.tables import approvals
from mobility.tables.models import TableRequest
from mobility.tables.options import TableOptions
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.access import overseers_only
from reports.base.formats import with_decimal_sign


def waiting_tables(study: VaultStudy, *, me: str) -> list[dict[str, Any]]:
    """Waiting requests of a study, and the obstacles to an approval by the reader."""
    found = [(each, TableOptions.from_json(each.options)) for each in approvals.waiting(study)]
    return [
        {
            "request": asked,
            "options": options,
            "odds": with_decimal_sign(f"{math.exp(options.level):.3g}"),
            "epsilon": with_decimal_sign(asked.facts["epsilon_per_m"]),
            "obstacle": approvals.obstacle(asked, by=me),
        }
        for asked, options in found
    ]


@require_POST
@overseers_only
def decide(request: HttpRequest, slug: str, table_id: int) -> HttpResponse:
    """Approve or refuse that a table is sanitised and written."""
    asked = get_object_or_404(TableRequest, pk=table_id, study__slug=slug)
    by = request.user.get_username()
    try:
        if request.POST.get("answer") == "approve":
            approvals.approve(asked, by=by)
            text = gettext(
                "You approved the table. If the command that requested it is run again, it writes the "
                "table. This works only once."
            )
        else:
            approvals.refuse(asked, by=by)
            text = gettext("You refused the request. The table will not be written.")
        messages.success(request, text)
    except MobilityError as error:
        messages.error(request, str(error))
    return redirect("administrator:study", slug=slug)
