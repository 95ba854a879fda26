from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"
    verbose_name = "analyst zone"

    def ready(self) -> None:
        # Importing connects them, once apps are loaded.
        from reports.accounts import signed_in  # noqa: F401, PLC0415
        from reports.sharing import deactivated  # noqa: F401, PLC0415
