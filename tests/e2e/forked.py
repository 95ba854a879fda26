"""Commands in a process forked from one that has loaded the libraries, and nothing of the product."""

import contextlib
import io
import os
import sys
import traceback

LIBRARIES = (
    "celery", "cryptography.hazmat.primitives.ciphers.aead", "django.core.management", "django.db.models",
    "django.template", "django.urls", "numba", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "redis",
)  # fmt: skip


def run_all(commands, environment, code, answer):
    """Run commands of the software in the folder `code`, each as `manage.py` runs it."""
    before = os.getcwd()  # noqa: PTH109 - as in sys.path
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(code)
    sys.path[:] = [code, *(place for place in sys.path if place not in ("", before))]
    from django.db import connections

    import manage

    ended = []
    for words in commands:
        sys.argv = ["manage.py", *words]
        number, output, errors = 0, io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                manage.main()
            except SystemExit as end:
                number = end.code if isinstance(end.code, int) else 1
                errors.write("" if isinstance(end.code, int) else str(end.code))
            except Exception:  # noqa: BLE001 - as manage.py would end
                number = 1
                traceback.print_exc()
        ended.append((number, output.getvalue(), errors.getvalue()))
    connections.close_all()
    answer.send(ended)
