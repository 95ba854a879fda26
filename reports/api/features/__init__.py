"""OGC API Features (Core, GeoJSON) of the zones of a study, for QGIS and other map programs."""
