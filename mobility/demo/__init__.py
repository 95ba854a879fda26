"""The demo study: a synthetic week of the FIMU festival, exact in its totals (see SOURCES.md)."""
