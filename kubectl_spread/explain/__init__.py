"""What `explain` adds to a report: causes, history, evictions, waiting pods, other engines.

It may import `report`, `audit` and `kube`.
"""
