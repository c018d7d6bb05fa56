"""What does kube-apiserver store, refuse and warn of? It may import `kube.api` and `kube.features`."""
