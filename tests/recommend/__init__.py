"""Changes that are recommended for small clusters."""
