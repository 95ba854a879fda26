"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application

from mobility.runtime import dump_no_core

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
dump_no_core()
application = get_wsgi_application()
