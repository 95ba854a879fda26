"""An app of one test, in which everything that should be sealed is written as it is."""
