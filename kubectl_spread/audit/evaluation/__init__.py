"""How do constraints count the pods now, and what stands in the way? It may import all of `audit` and `kube`."""
