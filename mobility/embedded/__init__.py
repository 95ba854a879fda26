"""Services that the embedded default starts: databases, Redis, a worker and the web server."""
