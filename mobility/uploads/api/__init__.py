"""The API for feeds: problem documents, uploads, batches."""
