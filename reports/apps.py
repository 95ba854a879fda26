from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"
    verbose_name = "analyst zone"

    def ready(self) -> None:
        from reports.accounts import signed_in  # noqa: F401, PLC0415 - connects itself, once apps are loaded
        from reports.sharing import deactivated  # noqa: F401, PLC0415 - as above
