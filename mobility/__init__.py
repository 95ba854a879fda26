"""The project and its operator zone: everything that touches raw data."""

from mobility.celery import app as celery_app

__all__ = ["celery_app"]
