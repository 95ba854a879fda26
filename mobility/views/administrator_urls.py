"""Addresses of administrators; no study may be called `create`."""

from django.urls import path

from mobility.views import administrator

app_name = "administrator"
urlpatterns = [
    path("", administrator.studies, name="studies"),
    path("create/", administrator.create, name="create"),
    path("<slug:slug>/", administrator.study, name="study"),
]
