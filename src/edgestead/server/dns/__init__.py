"""The processes that answer DNS, over UDP and over TCP."""
