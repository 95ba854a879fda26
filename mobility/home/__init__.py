"""The first page: next steps, tasks that wait for the reader, studies, and boards that were opened last."""
