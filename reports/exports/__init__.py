"""Files of what pages show: what is selected, its formats, the task that makes it.

Imports every subject that has figures.
"""
