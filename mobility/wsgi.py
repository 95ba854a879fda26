"""WSGI entry point."""

import gc

from django.core.wsgi import get_wsgi_application

from mobility import startup
from mobility.base.runtime import dump_no_core
from mobility.embedded.refusals import refuse_as_problems
from mobility.operations.metrics import folder as metrics_folder
from reports.base.turns import in_turns

dump_no_core()
startup.refuse_unreadable()
metrics_folder.prepare()
application = in_turns(get_wsgi_application())
refuse_as_problems()
startup.refuse_unsafe()
startup.hold_files()
startup.refuse_outdated()
startup.refuse_shared()
startup.load_solver()
# Modules stay for good: a full collection that looks through them as well stops all threads for 0.1 s.
gc.collect()
gc.freeze()
