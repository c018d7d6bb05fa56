"""How does the descheduler count and evict? It may import `kube.scheduler` and `kube.api`."""
