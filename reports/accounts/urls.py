"""Addresses of people and their rights. They are in every zone: each has its own accounts."""

from django.urls import path

from reports.accounts import matrix_views as matrix
from reports.accounts import views as people

app_name = "people"
urlpatterns = [
    path("", people.accounts, name="people"),
    path("new/", people.new_account, name="new"),
    path("matrix/", matrix.matrix, name="matrix"),
    path("matrix.csv", matrix.matrix_file, name="matrix_file"),
    path("<int:account_id>/", people.person, name="person"),
    path("<int:account_id>/roles/", people.change_roles, name="roles"),
    path("<int:account_id>/active/", people.change_active, name="active"),
    path("<int:account_id>/password/", people.new_password, name="password"),
    path("<int:account_id>/grants/", people.give_grant, name="grant"),
    path("<int:account_id>/grants/<int:grant_id>/withdraw/", people.withdraw_grant, name="withdraw"),
]
