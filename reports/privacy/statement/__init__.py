"""The privacy statement: computed from the numbers in use."""
