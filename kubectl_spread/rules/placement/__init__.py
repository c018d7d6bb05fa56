"""SPR3xx: where pods are, and where the next one may go."""
