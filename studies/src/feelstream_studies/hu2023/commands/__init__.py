"""`feelstream reproduce`."""
