"""What was read: pods by class, nodes, owners, templates. Facts only; it may import `kube`."""
