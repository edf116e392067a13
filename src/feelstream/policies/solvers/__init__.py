"""What several policies share: packing under a deadline, splitting the band, joint allocation of resources."""
