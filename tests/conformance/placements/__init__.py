"""The simulated scheduler, held against the whole kube-scheduler with its default profile, pod by pod."""
