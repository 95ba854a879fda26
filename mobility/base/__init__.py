"""What the operator zone's subjects share: environment, errors, logs, locks, memory. Imports no subject."""
