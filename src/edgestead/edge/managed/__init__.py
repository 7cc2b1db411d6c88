"""The managed ruleset at the edge: inspections, and what follows from a score."""
