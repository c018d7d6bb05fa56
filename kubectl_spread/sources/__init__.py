"""Where do objects come from? Manifests and API servers; every wire format yields the types of ``kube.api``."""
