"""Charts and maps drawn on the server."""
