"""What would happen if? Runs of the engine as a report, and fixes for pending pods. It may import `rules` and below.

It does no input or output and reads no clock.
"""
