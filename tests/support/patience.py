"""How long a test waits for what must come: only what is broken takes longer, however busy the machine is."""

PATIENCE_S = 600.0
