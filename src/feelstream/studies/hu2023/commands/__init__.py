"""`feelstream reproduce`, `feelstream confirm` and `feelstream multiverse`."""
