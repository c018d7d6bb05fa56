"""Simulated events on small clusters."""
