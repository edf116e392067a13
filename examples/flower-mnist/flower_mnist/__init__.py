"""Streaming MNIST on Flower, with devices scheduled by feelstream."""
