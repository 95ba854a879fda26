"""Common code of the operator zone: environment, errors, logs, locks, memory. Imports no subject."""
