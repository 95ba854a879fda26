from django.apps import AppConfig


class EmbeddedConfig(AppConfig):
    """Parts of every zone: system checks, and the command that serves."""

    name = "mobility.embedded"
    verbose_name = "running it"

    def ready(self) -> None:
        from mobility.embedded import checks, checks_secrets  # noqa: F401, PLC0415 - registers them, once apps are loaded
