"""The interactive page: one HTML file that works offline."""
