from django.apps import AppConfig


class SignInConfig(AppConfig):
    name = "mobility.signin"
    label = "signin"
    verbose_name = "sign-in"

    def ready(self) -> None:
        from mobility.signin import checks, events  # noqa: F401, PLC0415 - registers them, once apps are loaded
