"""A main database shared by both zones: a set-up of earlier releases that is no longer served.

The role of the analysts owned tables used by the operator's processes, so that anyone who broke into
the analysts' server could run code in the operator zone.
"""

from typing import Final

from django.apps import apps
from django.conf import settings
from django.db import connections

from reports.studies.models import Study
from reports.transfer.models import Sender

PAGE: Final = "docs/upgrading.md, From a shared main database to zones apart"
SHOWN: Final = 5


def why_shared() -> str:
    """Say why the main database is not this zone's own; empty if it is.

    On an analyst server that runs apart every study belongs to a sender. An operator zone knows no senders,
    and its vault no tables of analysts; one installation with both zones counts no study of a sender.
    """
    if settings.MOBILITY_ZONE == "analyst":
        slugs = list(Study.objects.filter(sent=None).order_by("slug").values_list("slug", flat=True))
        if slugs:
            more = ", ..." if len(slugs) > SHOWN else ""
            return (
                f"the main database is shared with an operator zone: {len(slugs)} of its studies were "
                f"not handed over by a sender ({', '.join(slugs[:SHOWN])}{more})"
            )
    elif settings.MOBILITY_ZONE == "operator":
        name = Sender.objects.order_by("name").values_list("name", flat=True).first()
        if name:
            return f"the main database belongs to an analyst server: it has a registered sender, {name}"
        if Study._meta.db_table in connections["vault"].introspection.table_names():  # compares no addresses
            return (
                "VAULT_DATABASE_URL and DATABASE_URL lead to one database: the vault has studies of analysts"
            )
    else:
        counted = apps.get_model("mobility", "VaultStudy").objects.values_list("slug", flat=True)
        sent = Study.objects.exclude(sent=None).filter(slug__in=list(counted)).order_by("slug").first()
        if sent:
            return f"the main database belongs to an analyst server: a sender hands over study {sent.slug}"
    return ""
