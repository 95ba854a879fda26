"""Exit code 0 when the web server of this container is ready to serve; no shell is needed for it."""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

PORT = 8000
TIMEOUT_S = 8


def is_ready() -> bool:
    """Whether it answers that databases answer, and that every migration has run."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/healthz/ready")
        return connection.getresponse().status == HTTPStatus.OK
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    raise SystemExit(0 if is_ready() else 1)
