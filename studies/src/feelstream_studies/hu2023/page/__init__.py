"""The reproduction in words: what its report shows, its page for the docs, its conclusion."""
