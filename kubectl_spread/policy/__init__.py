"""Which admission policies refuse what the rules find? The rules that look at one object, in CEL.

It may import `rules`, `audit` and `kube`.
"""
