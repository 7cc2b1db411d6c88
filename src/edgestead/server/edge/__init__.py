"""The processes of the edge proxy."""
