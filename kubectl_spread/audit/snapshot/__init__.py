"""Which objects were read? Pods by class, nodes, owners, templates: facts only. It may import `kube`."""
