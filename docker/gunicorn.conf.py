"""How the web server runs: the same in a container, as a systemd unit and in tests.

`GUNICORN_CMD_ARGS` comes after this file: `--bind 0.0.0.0:8000 --workers 4`.
"""

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
