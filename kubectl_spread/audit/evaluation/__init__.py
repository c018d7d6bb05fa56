"""How do constraints count the pods now, and which obstacles are there? It may import all of `audit` and `kube`."""
