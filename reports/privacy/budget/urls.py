"""Addresses of the budget of populations."""

from django.urls import path

from reports.privacy.budget import views as budget

app_name = "budget"
urlpatterns = [
    path("", budget.budget, name="budget"),
    path("caps/<int:cap_id>/", budget.decide, name="decide"),
]
