"""What do kube-scheduler's plugins answer? It may import `kube.api` and `kube.features`."""
