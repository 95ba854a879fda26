"""Addresses for programs."""

from django.urls import path

from mobility.uploads.api import views as api

app_name = "api"
urlpatterns = [
    path("studies/<slug:slug>/extracts/<str:filename>", api.extract, name="extract"),
    path("batches/<uuid:batch_id>", api.batch, name="batch"),
]
