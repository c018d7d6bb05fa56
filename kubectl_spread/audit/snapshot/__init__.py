"""What did we read? Pods by class, nodes, owners, templates: facts only. It may import `kube`."""
