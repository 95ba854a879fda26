"""Files of zones and base layers: GeoJSON, GeoPackage, shapefile, and the limits that hold for each."""
