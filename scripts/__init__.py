"""What make runs beside the project itself."""
