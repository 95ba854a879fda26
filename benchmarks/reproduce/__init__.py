"""`make reproduce`: claims of the papers, recomputed from `ldp`, and the exceptions."""
