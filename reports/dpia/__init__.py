"""The data protection pack: record of processing (article 30 GDPR) and impact assessment (article 35).

Filled in from the configuration that runs: what a machine cannot know is left open, and marked.
"""

from reports.base.later import later
from reports.dpia.assessment import assessment
from reports.dpia.parts import Pack, Section
from reports.dpia.record import record
from reports.studies.models import Study


def dpia_pack(study: Study) -> Pack:
    """Both documents of a study, of what is in force now."""
    return Pack(study=study, sections=(*record(study), *assessment(study)))


to_pdf = later("reports.dpia.pdf.to_pdf")

__all__ = ["Pack", "Section", "dpia_pack", "to_pdf"]
