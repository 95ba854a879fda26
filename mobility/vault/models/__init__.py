"""Tables of the vault database."""
