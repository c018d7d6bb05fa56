"""Which additional answers does `explain` give: causes, history, evictions, waiting pods?

It may import `diagnosis`, `report`, `audit` and `kube`.
"""
