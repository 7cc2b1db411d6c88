"""What a cluster keeps in PostgreSQL: the log of its control data, who owns what, key-values, secrets."""
