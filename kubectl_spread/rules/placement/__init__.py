"""SPR3xx: the nodes where pods are, and those where the next one may go."""
