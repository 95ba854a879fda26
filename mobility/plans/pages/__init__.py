"""Pages of administrators: drafts, simulator, study files, closing."""
