"""Addresses. Those of a zone that this installation does not have are absent."""

from django.conf import settings
from django.urls import include, path
from django.views.i18n import set_language

from mobility.operations.views import status
from reports.views.home import home

handler404 = "reports.outages.missing"
handler500 = "reports.outages.failed"
urlpatterns = [
    path("", home, name="home"),
    path("", include("mobility.signin.urls")),
    path("status/", status, name="status"),
    path("language/", set_language, name="set_language"),
    path("people/", include("reports.people_urls")),
    path("ledger/", include("reports.ledger_urls")),
    *([path("studies/", include("reports.urls"))] if settings.HAS_REPORTS else []),
]
if settings.HAS_VAULT:
    urlpatterns += [
        path("operator/", include("mobility.views.operator_urls")),
        path("api/v1/", include("mobility.views.api_urls")),
        path("administrator/", include("mobility.views.administrator_urls")),
        path("budget/", include("reports.budget_urls")),
    ]
if settings.HAS_REPORTS:
    urlpatterns += [
        path("api/v1/intake/", include("reports.api.intake_urls")),
        path("", include("reports.access_urls")),
        # Last: the reading API answers whatever is left below its root.
        path("api/v1/", include("reports.api.urls")),
    ]
