"""Metadata of a PDF/A file. Ours, not the library's: that one writes the moment of the download."""

from collections.abc import Mapping
from datetime import date
from html import escape

_TEMPLATE = """\
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:pdf="http://ns.adobe.com/pdf/1.3/"
    xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/">
   <pdfaid:part>2</pdfaid:part>
   <pdfaid:conformance>U</pdfaid:conformance>
   <xmp:CreatorTool>{software}</xmp:CreatorTool>
   <xmp:CreateDate>{day}T00:00:00Z</xmp:CreateDate>
   <xmp:ModifyDate>{day}T00:00:00Z</xmp:ModifyDate>
   <pdf:Producer>{software}</pdf:Producer>
   <dc:title><rdf:Alt><rdf:li xml:lang="x-default">{title}</rdf:li></rdf:Alt></dc:title>
   <dc:creator><rdf:Seq><rdf:li>{software}</rdf:li></rdf:Seq></dc:creator>
   <dc:description><rdf:Alt><rdf:li xml:lang="x-default">{facts}</rdf:li></rdf:Alt></dc:description>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>"""


def xmp_metadata(*, title: str, facts: Mapping[str, str], last_date: date) -> str:
    """Title, software and facts of a report; its dates are the last day of the data."""
    words = "; ".join(f"{name}: {value}" for name, value in facts.items())
    values = {"title": title, "software": facts["software"], "facts": words, "day": last_date.isoformat()}
    return _TEMPLATE.format(**{name: escape(value) for name, value in values.items()})
