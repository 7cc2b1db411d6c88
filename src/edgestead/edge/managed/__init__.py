"""The managed ruleset at the edge: inspections, in turns, and what follows from a score."""
