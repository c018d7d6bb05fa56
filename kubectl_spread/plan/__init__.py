"""What a plan is to correct, as the rules report it. It may import `rules` and below; the search is in `engine`.

It does no input or output and reads no clock.
"""
