"""The project and its operator zone: everything that touches raw data."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
# Processes are what uses the cores; threads of matrix products would multiply them. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
