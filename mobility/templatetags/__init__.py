"""Filters of the operator zone's templates."""
