"""Who owns what in a cluster, and whom a write waits for: states without I/O and clocks."""
