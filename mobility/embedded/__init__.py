"""What the embedded default starts by itself: databases, Redis, a worker and the web server."""

from mobility.embedded.databases import prepare
from mobility.embedded.shared import in_use, workers

__all__ = ["in_use", "prepare", "workers"]
