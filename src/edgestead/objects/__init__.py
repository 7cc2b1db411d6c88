"""Running users' stateful classes over their storage."""
