"""Addresses of the extract profiles of a study; no profile may be called `new`."""

from django.urls import path

from mobility.uploads.profile_pages import views as profiles

urlpatterns = [
    path("", profiles.profiles, name="profiles"),
    path("new/", profiles.new, name="new_profile"),
    path("<slug:name>/", profiles.profile, name="profile"),
    path("<slug:name>/delete/", profiles.delete, name="delete_profile"),
]
