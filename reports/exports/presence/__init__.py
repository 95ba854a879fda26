"""Files of presence by slot: tables, maps with time, drawings. Imports reports.slots and the formats."""
