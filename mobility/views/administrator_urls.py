"""Addresses of administrators; no study may be called `create`."""

from django.urls import path

from mobility.views import administrator, closing, demo

app_name = "administrator"
urlpatterns = [
    path("", administrator.studies, name="studies"),
    path("create/", administrator.create, name="create"),
    path("demo/remove/", demo.remove, name="remove_demo"),
    path("<slug:slug>/", administrator.study, name="study"),
    path("<slug:slug>/close/", closing.close, name="close"),
    path("<slug:slug>/certificate.json", closing.certificate, name="certificate"),
]
