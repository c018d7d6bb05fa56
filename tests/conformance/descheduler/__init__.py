"""The count of kubectl_spread.kube.descheduler, held against the real descheduler."""
