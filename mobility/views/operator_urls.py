"""Addresses of operators."""

from django.urls import path

from mobility.views import operator

app_name = "operator"
urlpatterns = [
    path("", operator.studies, name="studies"),
    path("batches/<uuid:batch_id>/", operator.batch, name="batch"),
    path("<slug:slug>/", operator.study, name="study"),
    path("<slug:slug>/upload/", operator.upload, name="upload"),
    path("<slug:slug>/close-days/", operator.close_days, name="close_days"),
    path("<slug:slug>/void-day/", operator.void_day, name="void_day"),
]
