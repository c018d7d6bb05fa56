"""SPR4xx: what the servers that run now, or another Kubernetes, make of the same objects."""
