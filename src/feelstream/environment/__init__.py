"""What changes around the devices: CPU frequencies, channels, places, who is there, what fails, energy harvested."""
