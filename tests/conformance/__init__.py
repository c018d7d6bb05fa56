"""Agreement with the real Kubernetes code, minor by minor."""
