"""The storage interfaces on SQLite and plain files: the embedded default."""
