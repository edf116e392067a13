"""What arrives at devices and what they hold: partitions, arrival processes, orders, buffers, the stream."""
