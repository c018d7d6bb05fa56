"""SPR4xx: the same objects on the servers that run now, and on another Kubernetes."""
