"""Maps of zones and of reported places: classes, shapes, density, page. Imports estimates."""
