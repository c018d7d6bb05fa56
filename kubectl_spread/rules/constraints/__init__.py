"""SPR2xx: the constraint or template by itself."""
