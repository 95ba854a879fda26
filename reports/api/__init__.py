"""The API for programs: the same numbers as the pages, read-only, below /api/v1/.

Its framework costs a quarter of a second to import; `door` does so at the first request, not at the start.
"""
