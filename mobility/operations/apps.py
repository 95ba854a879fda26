from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "mobility.operations"
    label = "operations"
    verbose_name = "operations"

    def ready(self) -> None:
        # Importing registers them: with the system checks, and as listeners to Celery.
        from mobility.operations import checks, metrics_tasks, recording  # noqa: F401
