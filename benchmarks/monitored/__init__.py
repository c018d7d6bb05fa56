"""``kubectl spread monitor`` on a real API server while pods change, with kube-state-metrics next to it."""
