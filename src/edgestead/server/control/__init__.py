"""The process that owns the control data: REST API, storage, the source of the feed."""
