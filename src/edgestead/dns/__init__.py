"""Answering DNS queries from the data of the change feed."""
