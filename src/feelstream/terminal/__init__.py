"""What commands share, ours and those of studies: the two consoles, common options, progress bars, tables."""
