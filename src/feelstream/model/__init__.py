"""The mathematics of the paper as pure functions, in its own symbols."""
