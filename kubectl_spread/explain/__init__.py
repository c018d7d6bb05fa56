"""Which additional answers does `explain` give: causes, history, waiting pods, next pods?

It may import `diagnosis`, `report`, `audit` and `kube`.
"""
