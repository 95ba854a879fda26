from django.apps import AppConfig


class MobilityConfig(AppConfig):
    name = "mobility"
    verbose_name = "operator zone"
