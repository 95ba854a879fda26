"""Classes: epsilon, visitors and estimates of each class of subscribers, and of all alike classes. No pages.

May import estimates, studies, privacy and base.
"""
