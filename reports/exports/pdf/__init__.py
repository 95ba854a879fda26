"""Reports as PDF documents (PDF/A-2u), drawn on the server."""

from reports.exports.pdf.report import to_pdf

__all__ = ["to_pdf"]
