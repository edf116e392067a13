"""The round loop: the paper's Algorithm 1, and what it happens in."""
