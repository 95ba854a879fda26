"""Addresses of the API. Everything below the root is found by the API itself, see `door`."""

from django.urls import path, re_path

from reports.api import docs_views as api_docs
from reports.api import door

app_name = "reading"
urlpatterns = [
    path("", door.root, name="root"),
    path("docs/", api_docs.docs, name="docs"),
    re_path(r"^(?P<rest>.+)$", door.answer, name="answer"),
]
