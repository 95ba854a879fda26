"""The analyst zone, and what both zones share: a folder is a subject. Never imports mobility."""
