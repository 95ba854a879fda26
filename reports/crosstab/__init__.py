"""Cross-tabulation of joint indicators: tables of two parts, and the share of any choice of categories.

Imports estimates and studies. No pages and no files: those are in `reports.pages` and `reports.exports`.
"""
