"""Place of a study: zones, base layers, projection and grid.

The modules of this package load shapely, and some GeoPandas, at their top: half a second. So they are
imported in the functions that need them, and by no module that every page loads. `stored` needs numpy alone.
"""
