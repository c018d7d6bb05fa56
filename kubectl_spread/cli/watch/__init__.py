"""``check --watch``: read the cluster again and again, and draw each answer. It may import what commands import."""
