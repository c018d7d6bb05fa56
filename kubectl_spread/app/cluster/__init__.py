"""Read from a live cluster what a run needs. It may import `audit`, `sources` and what lies below."""
