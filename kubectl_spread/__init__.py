"""Find the pods that Kubernetes is not spreading across zones and nodes as their constraints say, and the causes."""

__version__ = "0.1.0"
