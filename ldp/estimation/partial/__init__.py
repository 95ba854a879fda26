"""Estimates from reports that protect a part of what a value says (`ldp.protocols.partial`)."""
