"""The doctor: everything that the status page looks at, and what takes too long or too many rights for it."""
