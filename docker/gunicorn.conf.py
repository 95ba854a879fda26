"""How the web server runs: the same in a container, as a systemd unit and in tests.

`GUNICORN_CMD_ARGS` comes after this file: `--bind 0.0.0.0:8000 --workers 4`.
"""

import gc
import sys

bind = "127.0.0.1:8000"
worker_class = "gthread"
workers = 2
threads = 16  # an upload or a feed holds one while it lasts
timeout = 120  # of a process that says nothing; an upload that flows may take hours
graceful_timeout = 30
worker_tmp_dir = "/dev/shm"  # noqa: S108 - a file that tells that a process lives; it needs no disk
control_socket_disable = True
umask = 0o077

SWITCH_S = 0.03


def post_worker_init(_worker: object) -> None:
    """Let pages be computed without needless stops.

    Python stops a thread after 5 ms, often while it holds a lock that all others ask for at each translated
    word: then they queue, and 50 readers wait half as long again. A page seldom takes longer than SWITCH_S.
    Garbage collection goes through all modules, too, and stops every page for a tenth of a second meanwhile.
    """
    from django.urls import get_resolver

    sys.setswitchinterval(SWITCH_S)
    _ = get_resolver().url_patterns  # imports the pages before the first one is asked for
    gc.collect()
    gc.freeze()
