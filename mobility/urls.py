"""Addresses. The operator zone's are absent where there is no vault."""

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from reports.views.home import home

urlpatterns = [
    path("", home, name="home"),
    path(
        "sign-in/",
        LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("studies/", include("reports.urls")),
]
if settings.HAS_VAULT:
    urlpatterns += [
        path("operator/", include("mobility.views.operator_urls")),
        path("administrator/", include("mobility.views.administrator_urls")),
    ]
