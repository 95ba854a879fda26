"""Backup, restore, escrow of keys."""
