from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"
    verbose_name = "analyst zone"

    def ready(self) -> None:
        from reports.accounts import signed_in  # noqa: F401 - importing connects them
        from reports.sharing import deactivated  # noqa: F401
