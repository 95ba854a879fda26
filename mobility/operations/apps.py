from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "mobility.operations"
    label = "operations"
    verbose_name = "operations"

    def ready(self) -> None:
        # Importing registers them: with the system checks, and as listeners to Celery.
        from mobility.operations import checks, recording  # noqa: F401
        from mobility.operations.metrics import tasks as metrics_tasks  # noqa: F401
