"""``check --watch``: read the cluster again and again, and show each report. It may import what commands may."""
