"""Forms of sign-in: allauth's, with the names and hints that this site's pages have."""

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm
from allauth.account.forms import ReauthenticateForm as PasswordAgain
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.utils.translation import gettext_lazy as _


class SignInForm(LoginForm):
    """User name and password, under the names that browsers and scripts know: `username` and `password`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name")
        self.fields["login"].widget.attrs["autofocus"] = True
        _without_hints(self)

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else field_name


class PasswordForm(ChangePasswordForm):
    """The present password, and the new one twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].help_text = " ".join(password_validators_help_texts())
        _without_hints(self)


class ConfirmForm(PasswordAgain):
    """The password once more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_at_once(self, "password")


class SecondFactorForm(AuthenticateForm):
    """A code, after the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].help_text = _("Code from your authenticator app, or one of your recovery codes.")
        _ask_at_once(self, "code")


class ConfirmCodeForm(ReauthenticateForm):
    """A code once more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_at_once(self, "code")


class NewAppForm(ActivateTOTPForm):
    """The first code of an app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["inputmode"] = "numeric"
        _without_hints(self)


def _ask_at_once(form: Any, name: str) -> None:
    """The one field of a page has the cursor, and phones offer digits for codes."""
    attributes = form.fields[name].widget.attrs
    attributes["autofocus"] = True
    if name == "code":
        attributes["inputmode"] = "numeric"
    _without_hints(form)


def _without_hints(form: Any) -> None:
    """A label says what a field is; a hint inside of it goes when it is needed."""
    for field in form.fields.values():
        field.widget.attrs.pop("placeholder", None)
