"""Faults that are put into the core on purpose, to prove that the tests find them."""
