"""Edgestead: an edge platform that you run yourself."""

__version__ = "0.1.0"
