"""What every phase is given, and uses."""
