"""The ledger as people read it: page, texts and export. Its chain and its check are in ledger."""
