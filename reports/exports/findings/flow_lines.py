"""Flows for programs that draw maps: a straight line from zone to zone for each listed pair; WGS 84."""

import json

from django.utils.translation import gettext
from shapely.geometry import shape

from reports.exports.errors import ExportError
from reports.exports.findings.flows import FlowFindings, pair_row
from reports.studies.models import Area


def to_geojson(findings: FlowFindings) -> bytes:
    """A feature for each listed pair of two different zones; ExportError without any shapes."""
    flows = findings.flows
    area = Area.objects.filter(study=flows.pair.indicator.study).first()
    points = {} if area is None else {name: _point(each) for name, each in area.zone_shapes.items()}
    if not points:
        raise ExportError(
            gettext("No boundaries are available for the zones of this study, so there is no map to export.")
        )
    origins, destinations = flows.pair.origin.file_names, flows.pair.destination.file_names
    features = []
    for flow in flows.listed:
        names = origins[flow.origin], destinations[flow.destination]
        if names[0] == names[1] or not points.keys() >= set(names):
            continue
        features.append(
            {
                "type": "Feature",
                "properties": pair_row(flows, flow.origin, flow.destination),
                "geometry": {"type": "LineString", "coordinates": [points[name] for name in names]},
            }
        )
    whole = {"type": "FeatureCollection", "provenance": findings.before | findings.after}
    return json.dumps(whole | {"features": features}, ensure_ascii=False, allow_nan=False).encode()


def _point(geometry: object) -> list[float]:
    centre = shape(geometry).representative_point()
    return [round(centre.x, 6), round(centre.y, 6)]
