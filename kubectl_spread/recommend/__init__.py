"""Which smallest change of a workload lets it survive the loss of a zone or node, a drain and a rollout?

It may import `rules` and below, does no input or output and reads no clock.
"""
