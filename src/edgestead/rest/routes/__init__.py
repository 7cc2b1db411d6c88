"""The routes of the REST face, a module for each resource."""
