from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "mobility.operations"
    label = "operations"
    verbose_name = "operations"

    def ready(self) -> None:
        from mobility.operations import checks  # noqa: F401, PLC0415 - registers them, once apps are loaded
