"""Forms of sign-in: allauth's, with the names and hints that this site's pages have."""

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm
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
        _without_hints(self)


def _without_hints(form: Any) -> None:
    """A label says what a field is; a hint inside of it goes when it is needed."""
    for field in form.fields.values():
        field.widget.attrs.pop("placeholder", None)
