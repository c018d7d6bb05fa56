"""The model of kube-scheduler and the controllers: where pods may go, and what follows from a change.

It may import `audit` and below, does no input or output and reads no clock.
"""
