"""The command edgecli."""
