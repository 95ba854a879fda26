"""Addresses at which operator zones that run apart hand over."""

from django.urls import path

from reports.transfer import views as intake

app_name = "intake"
urlpatterns = [
    path("studies/<slug:slug>/state", intake.state, name="state"),
    path("studies/<slug:slug>", intake.study, name="study"),
    path("studies/<slug:slug>/publications/<uuid:publication_id>", intake.publication, name="publication"),
    path("studies/<slug:slug>/receipts", intake.receipts, name="receipts"),
    path("studies/<slug:slug>/closed", intake.closed, name="closed"),
]
