"""The page that makes a study file, and a draft from it: a form, and the text that it writes.

Nothing of it is stored before the draft. It may import the other pages of plans, extracts and reports.
"""
