"""Exchanges as all of the edge sees them: a request, its answer, and outcomes that take their time."""
