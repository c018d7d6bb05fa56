"""Does a pod have the selectors that the API server would store? Verdicts, refusals, and the merge itself.

It may import `audit.snapshot` and `kube`.
"""
