"""What the embedded default starts by itself: databases, Redis, a worker and the web server."""
