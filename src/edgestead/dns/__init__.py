"""Answering DNS queries from what the change feed says."""
