"""Addresses of operators."""

from django.urls import include, path

from mobility.batches.pages import undoing
from mobility.uploads import coverage_views as coverage
from mobility.uploads import operator_views as operator
from mobility.uploads import views as uploads
from mobility.uploads.feeds import views as feeds

app_name = "operator"
urlpatterns = [
    path("", operator.studies, name="studies"),
    path("batches/<uuid:batch_id>/", operator.batch, name="batch"),
    path("batches/<uuid:batch_id>/cancel/", operator.cancel, name="cancel"),
    path("batches/<uuid:batch_id>/unmatched-cells.csv", coverage.unmatched_cells, name="unmatched_cells"),
    path("<slug:slug>/", operator.study, name="study"),
    path("<slug:slug>/coverage/", coverage.coverage, name="coverage"),
    path("<slug:slug>/uploads/", uploads.collection, name="uploads"),
    path("<slug:slug>/uploads/<uuid:upload_id>/", uploads.upload, name="upload"),
    path("<slug:slug>/feeds/", feeds.feeds, name="feeds"),
    path("<slug:slug>/feeds/<int:token_id>/revoke/", feeds.revoke_feed, name="revoke_feed"),
    path("<slug:slug>/profiles/", include("mobility.uploads.profile_pages.urls")),
    path("<slug:slug>/close-days/", operator.close_days, name="close_days"),
    path("<slug:slug>/close-slots/", operator.close_slots, name="close_slots"),
    path("<slug:slug>/void-day/", operator.void_day, name="void_day"),
    path("<slug:slug>/void-day/<int:undo_id>/withdraw/", undoing.withdraw, name="withdraw_undo"),
]
