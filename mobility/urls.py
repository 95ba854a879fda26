"""Addresses. Those of a zone that this installation does not have are absent."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from mobility.home.views import home
from mobility.operations.views import status
from reports.help import views as help_views
from reports.pages.tables import tables

handler404 = "reports.base.outages.missing"
handler500 = "reports.base.outages.failed"
urlpatterns = [
    path("", home, name="home"),
    path("", include("mobility.signin.urls")),
    path("status/", status, name="status"),
    path("help/", login_required(RedirectView.as_view(url="index.md")), name="help_start"),
    path("help/<path:path>", help_views.page, name="help"),
    path("language/", set_language, name="set_language"),
    path("people/", include("reports.accounts.urls")),
    path("ledger/", include("reports.audit.urls")),
    *([path("studies/", include("reports.urls"))] if settings.HAS_REPORTS else []),
]
if settings.HAS_VAULT:  # an analyst zone has no tables for these
    from mobility.demo.views import remove
    from mobility.plans.pages import urls as administrator

    demo = path("demo/remove/", remove, name="remove_demo")
    urlpatterns += [
        path("operator/", include("mobility.uploads.urls")),
        path("api/v1/", include("mobility.uploads.api.urls")),
        path("administrator/", include(([demo, *administrator.urlpatterns], administrator.app_name))),
        path("budget/", include("reports.privacy.budget.urls")),
    ]
if settings.HAS_REPORTS:
    urlpatterns += [
        path("api/v1/intake/", include("reports.transfer.urls")),
        path("tables/", tables, name="tables"),
        path("", include("reports.sharing.urls")),
        # Last: the reading API answers all other addresses below its root.
        path("api/v1/", include("reports.api.urls")),
    ]
