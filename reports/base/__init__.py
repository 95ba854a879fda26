"""What every subject uses: formats of numbers and dates, status of a figure, outages. Imports no subject."""
