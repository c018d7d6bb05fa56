"""How does kube-scheduler spread pods over domains? It imports `kube.api` and its neighbours in `kube.scheduler`."""
