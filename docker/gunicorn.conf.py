"""How the web server runs: the same in a container, as a systemd unit and in tests.

`GUNICORN_CMD_ARGS` comes after this file: `--bind 0.0.0.0:8000 --workers 4`.
"""

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

# Pages are work for the processor, and threads of one process have it in turn. With Python's own 5 ms a thread
# is stopped in the middle of a page, often while it holds a lock that all others ask for at each translated
# word: then all queue for that lock, and 50 readers wait half as long again. A page seldom takes longer than this.
sys.setswitchinterval(0.03)
