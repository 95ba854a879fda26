"""Addresses of administrators; no study may be called `create`."""

from django.urls import path

from mobility.batches.pages import undoing
from mobility.plans.new_study import views
from mobility.plans.pages import administrator, closing, draft_edit, drafts, simulator, study_files
from mobility.tables import pages as tables

app_name = "administrator"
urlpatterns = [
    path("", administrator.studies, name="studies"),
    path("create/", views.create, name="create"),
    path("simulator/", simulator.simulator, name="simulator"),
    path("drafts/", drafts.drafts, name="drafts"),
    path("drafts/<int:draft_id>/", drafts.draft, name="draft"),
    path("drafts/<int:draft_id>/edit/", draft_edit.edit, name="edit_draft"),
    path("drafts/<int:draft_id>/step/", drafts.step, name="draft_step"),
    path("<slug:slug>/", administrator.study, name="study"),
    path("<slug:slug>/draft/", drafts.draft_study, name="draft_study"),
    path("<slug:slug>/undo/<int:undo_id>/", undoing.decide, name="decide_undo"),
    path("<slug:slug>/tables/<int:table_id>/", tables.decide, name="decide_table"),
    path("<slug:slug>/close/", closing.close, name="close"),
    path("<slug:slug>/study.json", study_files.export, name="export_study"),
    path("<slug:slug>/certificate.json", closing.certificate, name="certificate"),
]
