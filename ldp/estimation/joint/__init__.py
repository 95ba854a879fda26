"""Questions about several values of an indicator at once: linear ones, and tables of joint indicators."""
