"""What would happen if? The model of kube-scheduler and the controllers, run forward. It may import `report` and below.

It does no input or output and reads no clock.
"""
