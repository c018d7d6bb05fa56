"""Which facts does a run report? The types of the report, made from an audit. It may import `audit` and `kube`."""
