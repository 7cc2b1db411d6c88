"""A control process as a node of a cluster: its place, its links to others, requests passed on."""
