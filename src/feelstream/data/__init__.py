"""Data: the sets that runs train on (datasets/) and how they arrive at devices (streaming/)."""
