"""Where objects come from: manifests and the apiserver; every wire yields the model of ``kube``."""
