"""Studies as administrators make them: drafts, review, publication, closing. Imports batches and vault."""
