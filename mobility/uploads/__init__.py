"""Ways in for files: browser, feeds, watched folder; admission and leases of uploads. Imports batches."""
