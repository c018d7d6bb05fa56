"""Which evictions correct the placement, in which order? It may import `simulate` and below.

Each eviction is tried in the simulation before it is in a plan.

It does no input or output and reads no clock.
"""
