"""A batch from the queue to its end: running, reading, fairness, recovery. Publication has a folder."""
