"""Use cases, and the rules that hold between resources."""
