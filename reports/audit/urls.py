"""Addresses of the ledger. They are in every zone: each has its own ledger."""

from django.urls import path

from reports.audit import views as ledger

app_name = "ledger"
urlpatterns = [
    path("", ledger.ledger, name="ledger"),
    path("check/", ledger.check, name="check"),
    path("ledger.jsonl", ledger.file, name="file"),
    path("head.json", ledger.head, name="head"),
    path("public-key.pem", ledger.public_key, name="public_key"),
]
