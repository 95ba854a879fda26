"""Forms of sign-in: allauth's, with the names and hints that this site's pages have."""

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm
from allauth.account.forms import ReauthenticateForm as PasswordAgain
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.forms import Form
from django.utils.translation import gettext_lazy as _


class _Plain(Form):
    """A label says what a field is: a hint inside of it, which goes when it is needed, is left out.

    `at_once` is the field that has the cursor; for codes phones offer digits.
    """

    at_once = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs.pop("placeholder", None)
            if name == self.at_once:
                field.widget.attrs["autofocus"] = True
            if name == "code":
                field.widget.attrs["inputmode"] = "numeric"


class SignInForm(_Plain, LoginForm):
    """User name and password, under the names that browsers and scripts know: `username` and `password`."""

    at_once = "login"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name")

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else field_name


class PasswordForm(_Plain, ChangePasswordForm):
    """The present password, and the new one twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].help_text = " ".join(password_validators_help_texts())


class ConfirmForm(_Plain, PasswordAgain):
    """The password once more."""

    at_once = "password"


class SecondFactorForm(_Plain, AuthenticateForm):
    """A code, after the password."""

    at_once = "code"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].help_text = _("Code from your authenticator app, or one of your recovery codes.")


class ConfirmCodeForm(_Plain, ReauthenticateForm):
    """A code once more."""

    at_once = "code"


class NewAppForm(_Plain, ActivateTOTPForm):
    """The first code of an app."""
