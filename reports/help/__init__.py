"""The documentation as pages of the product, and which chapter explains which page."""
