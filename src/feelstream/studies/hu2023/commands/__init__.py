"""`feelstream reproduce` and `feelstream multiverse`."""
