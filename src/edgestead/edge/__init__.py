"""HTTP at the edge: listener, origins, challenges, events."""
