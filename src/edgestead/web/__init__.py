"""The dashboard: pages over the API, for people who would rather look than read."""
