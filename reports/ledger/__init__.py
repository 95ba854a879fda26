"""The ledger: the only way to add an entry, its chain, its key and its check. Its page is in audit."""
