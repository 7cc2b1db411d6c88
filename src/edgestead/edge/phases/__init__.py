"""The phases that a request and its answer pass, in their order."""
