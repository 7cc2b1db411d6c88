"""Both ends of the change feed's wire."""
