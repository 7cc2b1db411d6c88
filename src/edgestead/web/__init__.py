"""The dashboard's place (not built yet)."""
