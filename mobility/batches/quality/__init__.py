"""Quality checks of files and days: facts of a batch, comparison with earlier days, coverage."""
