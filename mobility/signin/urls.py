"""Addresses of sign-in and of one's own account. Of allauth's pages only those that are wanted have one.

allauth finds its pages by name, so the names are its own; `login`, `logout` and `account` are ours.
"""

from allauth.account import views as account_views
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from django.contrib.auth.views import LogoutView
from django.urls import path

from mobility.signin import views
from mobility.signin.oidc import flow

urlpatterns = [
    path("sign-in/", views.sign_in, name="account_login"),
    path("sign-in/", views.sign_in, name="login"),
    path("sign-in/second-factor/", mfa.authenticate, name="mfa_authenticate"),
    path("sign-in/blocked/", account_views.account_inactive, name="account_inactive"),
    path("sign-in/provider/", flow.begin, name="oidc_login"),
    path("sign-in/provider/answer/", flow.callback, name="oidc_callback"),
    path("sign-in/provider/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("account/", views.account, name="mfa_index"),
    path("account/", views.account, name="mfa_list_webauthn"),
    path("account/", views.account, name="account"),
    path("account/password/", views.change_password, name="account_change_password"),
    path("account/sessions/end-others/", views.end_others, name="end_other_sessions"),
    path("account/confirm/", account_views.reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("account/confirm/key/", webauthn.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("account/app/", totp.activate_totp, name="mfa_activate_totp"),
    path("account/app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/keys/add/", webauthn.add_webauthn, name="mfa_add_webauthn"),
    path("account/keys/<int:pk>/", webauthn.edit_webauthn, name="mfa_edit_webauthn"),
    path("account/keys/<int:pk>/remove/", webauthn.remove_webauthn, name="mfa_remove_webauthn"),
    path("account/recovery-codes/", recovery.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new/", recovery.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "account/recovery-codes/file/", recovery.download_recovery_codes, name="mfa_download_recovery_codes"
    ),
]
