"""Fuzzing: the whole program gets random input, and must neither crash, hang nor write control characters."""
