"""Compiled loops and random bits. They know no epsilon and no plan, and import nothing else of ldp."""
