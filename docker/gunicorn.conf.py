"""How the web server runs: the same in a container, as a systemd unit and in tests.

`GUNICORN_CMD_ARGS` comes after this file: `--bind 0.0.0.0:8000 --workers 4`.
"""

import sys

bind = "127.0.0.1:8000"
# gthread, with limits of time for slow clients
worker_class = "mobility.embedded.slow_clients.BoundedThreadWorker"
sendfile = False  # whose limits it would not keep
workers = 2
threads = 16  # an upload or a feed holds one while it lasts
timeout = 120  # of a process that says nothing; an upload that flows may take hours
graceful_timeout = 30
worker_tmp_dir = "/dev/shm"  # noqa: S108 - a file that tells that a process lives; it needs no disk
control_socket_disable = True
umask = 0o077

SWITCH_S = 0.03  # Python's own is 0.005


def post_worker_init(_worker: object) -> None:
    """Let a thread that computes a page go on for longer before another has its turn.

    One that is stopped often holds a lock that all others ask for at each translated word (asgiref's, of the
    active language): then they queue for it. In turn a page waits longer, at each statement, for one that
    computes without any. Measured beside each other, the first weighs more (docs/performance.md, Under load).
    """
    sys.setswitchinterval(SWITCH_S)
