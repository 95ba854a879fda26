"""WSGI entry point."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from mobility.base.runtime import dump_no_core
from mobility.embedded.refusals import refuse_as_problems
from mobility.operations.metrics import folder as metrics_folder
from mobility.startup import (
    hold_files,
    refuse_outdated,
    refuse_shared,
    refuse_unreadable,
    refuse_unsafe,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
dump_no_core()
refuse_unreadable()
metrics_folder.prepare()
application = get_wsgi_application()
refuse_as_problems()
refuse_unsafe()
hold_files()
refuse_outdated()
refuse_shared()
# Modules stay for good: a full collection that looks through them as well stops all threads for 0.1 s.
gc.collect()
gc.freeze()
