"""Addresses of what a reader opens to others, and of what others see of it."""

from django.urls import path

from reports.sharing import saved_views as saved
from reports.sharing import tokens_views as tokens
from reports.sharing import views as shares

app_name = "access"
urlpatterns = [
    path("access/tokens/", tokens.tokens, name="tokens"),
    path("access/tokens/<int:token_id>/revoke/", tokens.revoke_token, name="revoke_token"),
    path("access/shares/", shares.shares, name="shares"),
    path("access/shares/new/<slug:slug>/<slug:indicator_slug>/", shares.new_share, name="new_share"),
    path("access/shares/<int:link_id>/revoke/", shares.revoke_share, name="revoke_share"),
    path("access/saved/", saved.saved, name="saved"),
    path("access/saved/<int:view_id>/remove/", saved.remove_saved, name="remove_saved"),
    path("shared/<str:token>/", shares.shared, name="shared"),
    path("shared/<str:token>/frame/", shares.embedded, name="embedded"),
]
