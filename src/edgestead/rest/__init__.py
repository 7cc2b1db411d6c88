"""The REST face: one request pipeline, typed routes."""
