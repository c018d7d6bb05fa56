"""A real Kubernetes control plane as ordinary processes, for tests and for trying things out."""
