"""Numbers: mean, quantiles, share above a cut and differences of means, and their texts. No pages.

May import estimates, studies, privacy and base.
"""
