"""Which additional answers does `explain` give: causes, history, evictions, waiting pods, other engines?

It may import `diagnosis`, `report`, `audit` and `kube`.
"""
