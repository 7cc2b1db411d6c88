"""The processes that run stateful objects."""
