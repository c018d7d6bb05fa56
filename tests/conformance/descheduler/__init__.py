"""The count of kubectl_spread.kube.descheduler.topologyspread, held against the real descheduler."""
