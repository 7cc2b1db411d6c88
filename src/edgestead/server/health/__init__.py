"""Facts of the server's health, gathered where they are known, and rows for those who ask."""
