"""Why is a constraint uneven, who can correct it, and which obstacles are there?

It may import `report`, `audit` and `kube`.
"""
