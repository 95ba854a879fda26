"""Addresses of the analyst zone. A file name has a dot, so it cannot be the slug of an indicator."""

from django.urls import path, re_path

from reports.views import days, downloads, indicator, statement, studies

app_name = "reports"
urlpatterns = [
    path("", studies.studies, name="studies"),
    path("<slug:slug>/", studies.study, name="study"),
    re_path(
        r"^(?P<slug>[-\w]+)/export\.(?P<file_format>json|csv)$", downloads.download_study, name="study_file"
    ),
    path("<slug:slug>/statement/", statement.statement, name="statement"),
    path("<slug:slug>/statement.json", downloads.download_statement, name="statement_file"),
    path("<slug:slug>/<slug:indicator_slug>/", indicator.indicator, name="indicator"),
    re_path(
        r"^(?P<slug>[-\w]+)/(?P<indicator_slug>[-\w]+)/export\.(?P<file_format>json|csv)$",
        downloads.download_window,
        name="indicator_file",
    ),
    path("<slug:slug>/<slug:indicator_slug>/days/", days.days, name="days"),
    re_path(
        r"^(?P<slug>[-\w]+)/(?P<indicator_slug>[-\w]+)/days\.(?P<file_format>json|csv)$",
        downloads.download_days,
        name="days_file",
    ),
]
