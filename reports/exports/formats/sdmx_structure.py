"""Structure and codelists of a study's SDMX-CSV files, as an SDMX-JSON 2.0 structure message.

Each indicator has a data structure definition: they differ in their list of categories only. Names are in
English and French in every language of the reader.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from reports.exports.formats.sdmx_codes import AGENCY, PRESENCE, TOTAL, VERSION, Code, StudyCodes
from reports.exports.selection import Selection
from reports.studies.models import Indicator

Json = dict[str, Any]
Names = Json  # of something: `name`, and `names` by language
_SCHEMA: Final = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/structure-message/tools/schemas/2.0.0/"
    "sdmx-json-structure-schema.json"
)
_FREQ: Final = {"D": _("Daily"), "N": _("Minutely"), "_O": _("Other frequency")}
_OBS_STATUS: Final = {
    "E": _("Estimated value"),
    "L": _("Missing value; the data exist but were not collected"),
    "O": _("Missing value"),
    "Q": _("Missing value; suppressed"),
    "S": _("Strike and other special events"),
    "U": _("Low reliability"),
}
_CONF_STATUS: Final = {"A": _("Primary confidentiality due to small counts"), "F": _("Free for publication")}
_FIXED_LISTS: Final = {
    "FREQ": (_("Frequency of observation"), _FREQ),
    "OBS_STATUS": (_("Observation status"), _OBS_STATUS),
    "CONF_STATUS": (_("Confidentiality status"), _CONF_STATUS),
}
_DIMENSIONS: Final = {
    "FREQ": _("Frequency of observation"),
    "REF_AREA": _("Reference area"),
    "INDICATOR": _("Indicator"),
    "CATEGORY": _("Category"),
}
_TIME: Final = {"TIME_PERIOD": _("Time period")}
_MEASURE: Final = {
    "OBS_VALUE": _("Share of the study's visitors, or number of people for presence by time slot")
}
_NUMBERS: Final = {  # type of the values, as SDMX calls it
    "CI_LOW": (_("Lower end of the confidence interval"), "Double"),
    "CI_HIGH": (_("Upper end of the confidence interval"), "Double"),
    "CI_LEVEL": (_("Confidence level of the intervals"), "Double"),
    "N_REPORTS": (_("Answers received"), "Integer"),
    "EPSILON": (_("Epsilon"), "Double"),
    "MECHANISM": (_("Mechanism"), "String"),
    "POLICY_VERSION": (_("Plan version"), "Integer"),
}
_STATUSES: Final = ("OBS_STATUS", "CONF_STATUS")


def to_sdmx_json(selection: Selection) -> bytes:
    """Structures, concepts and codelists of all SDMX-CSV files of a study."""
    return json.dumps(structure_of(StudyCodes(selection.study)), ensure_ascii=False, indent=1).encode()


def structure_of(codes: StudyCodes) -> Json:
    """Return the message; its date is that of the study, so that same data give the same bytes."""
    study, indicators = codes.study, list(codes.study.indicators.all())
    named = [Code(each.slug, each.name, each.name_fr or each.name) for each in indicators]
    if codes.slots is not None:
        named.append(Code(PRESENCE, *_both(_("Presence by time"))))
    lists = [
        *(_codelist(f"CL_{name}", _both(title), _fixed(of)) for name, (title, of) in _FIXED_LISTS.items()),
        _codelist(_own(codes, "AREA"), _both(_("Reference area")), codes.areas),
        _codelist(_own(codes, "INDICATOR"), _both(_("Indicator")), named),
        *(
            _codelist(_categories_id(codes, each.id), each[1:], _categories(codes, each, indicators))
            for each in named
        ),
    ]
    return {
        "meta": {
            "schema": _SCHEMA,
            "id": f"{study.slug}_structure",
            "prepared": study.created_at.isoformat(timespec="seconds"),
            "test": study.is_demo,
            "contentLanguages": ["en", "fr"],
            "sender": {"id": AGENCY},
        },
        "data": {
            "conceptSchemes": [_concepts()],
            "codelists": lists,
            "dataStructures": [_structure(codes, each) for each in named],
        },
    }


def _categories(codes: StudyCodes, named: Code, indicators: Iterable[Indicator]) -> list[Code]:
    """Return the total where rows have it, and the categories."""
    indicator = next((each for each in indicators if each.slug == named.id), None)
    total = [Code(TOTAL, *_both(_("Total")))]
    if indicator is None:
        return total
    return [*(total if codes.has_total(indicator) else []), *codes.categories(indicator)]


def _structure(codes: StudyCodes, indicator: Code) -> Json:
    lists = {
        "FREQ": "CL_FREQ",
        "REF_AREA": _own(codes, "AREA"),
        "INDICATOR": _own(codes, "INDICATOR"),
        "CATEGORY": _categories_id(codes, indicator.id),
    }
    dimensions = [
        {"position": place, **_component(name, _coded(lists[name]))} for place, name in enumerate(_DIMENSIONS)
    ]
    attributes = [
        *(_attribute(name, _typed(of)) for name, (_text, of) in _NUMBERS.items()),
        *(_attribute(name, _coded(f"CL_{name}")) for name in _STATUSES),
    ]
    return {
        **_artefact(codes.structure_id(indicator.id), indicator[1:]),
        "dataStructureComponents": {
            "dimensionList": {
                "id": "DimensionDescriptor",
                "dimensions": dimensions,
                "timeDimension": _component("TIME_PERIOD", _typed("ObservationalTimePeriod")),
            },
            "measureList": {
                "id": "MeasureDescriptor",
                "measures": [{**_component("OBS_VALUE", _typed("Double")), "usage": "optional"}],
            },
            "attributeList": {"id": "AttributeDescriptor", "attributes": attributes},
        },
    }


def _concepts() -> Json:
    numbers = {name: text for name, (text, _of) in _NUMBERS.items()}
    statuses = {name: _FIXED_LISTS[name][0] for name in _STATUSES}
    texts = {**_DIMENSIONS, **_TIME, **_MEASURE, **numbers, **statuses}
    return {
        **_artefact("CS_REPORTS", _both(_("Columns of SDMX-CSV files"))),
        "concepts": [{"id": name, **_names(*_both(text))} for name, text in texts.items()],
    }


def _codelist(name: str, title: Iterable[str], codes: Iterable[Code]) -> Json:
    return {
        **_artefact(name, title),
        "codes": [{"id": code.id, **_names(code.name, code.name_fr)} for code in codes],
    }


def _fixed(texts: Mapping[str, Promise | str]) -> list[Code]:
    return [Code(code, *_both(text)) for code, text in texts.items()]


def _artefact(name: str, names: Iterable[str]) -> Json:
    return {"id": name, "agencyID": AGENCY, "version": VERSION, **_names(*names)}


def _names(name: str, name_fr: str) -> Names:
    return {"name": name, "names": {"en": name, "fr": name_fr}}


def _both(text: Promise | str) -> tuple[str, str]:
    """Return a text in English and in French."""
    with override("en"):
        name = str(text)
    with override("fr"):
        return name, str(text)


def _component(name: str, representation: Json) -> Json:
    concept = f"urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept={AGENCY}:CS_REPORTS({VERSION}).{name}"
    return {"id": name, "conceptIdentity": concept, "localRepresentation": representation}


def _attribute(name: str, representation: Json) -> Json:
    relation = {"attributeRelationship": {"observation": {}}, "measureRelationship": ["OBS_VALUE"]}
    return {**_component(name, representation), "usage": "optional", **relation}


def _coded(codelist: str) -> Json:
    return {"enumeration": f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist={AGENCY}:{codelist}({VERSION})"}


def _typed(name: str) -> Json:
    return {"format": {"dataType": name}}


def _own(codes: StudyCodes, name: str) -> str:
    """Name of a codelist of this study: registries keep those of several studies of one agency."""
    return f"CL_{name}_{codes.study.slug}"


def _categories_id(codes: StudyCodes, slug: str) -> str:
    return f"{_own(codes, 'CATEGORY')}_{slug}"
