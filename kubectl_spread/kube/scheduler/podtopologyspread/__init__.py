"""Where may a pod go by its spread constraints? It may import `kube.api`, `kube.features` and its neighbours."""
