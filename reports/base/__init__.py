"""Common code of all subjects: numbers, dates, status of a figure, outages. Imports no subject."""
