"""Why is a constraint uneven, who can mend it, and what stands in the way?

It may import `report`, `audit` and `kube`.
"""
