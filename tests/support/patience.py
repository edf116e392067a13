"""How long a test waits for what must come: only what is broken takes longer, however busy the machine is."""

PATIENCE_S = 1200.0  # a page of commands took more than 600 s beside fifteen busy processes
