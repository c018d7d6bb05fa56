"""What does kube-apiserver store, refuse and warn about? It may import `kube.api` and `kube.features`."""
