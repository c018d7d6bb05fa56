"""What does a run report? Types and how an audit becomes them. It may import `audit` and `kube`."""
