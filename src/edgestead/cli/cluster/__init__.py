"""`edgecli cluster`: several machines that are one server."""
