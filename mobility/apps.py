from django.apps import AppConfig


class MobilityConfig(AppConfig):
    name = "mobility"
    verbose_name = "operator zone"

    def ready(self) -> None:
        from mobility import tasks  # noqa: F401 - importing registers them
