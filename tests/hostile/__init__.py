"""Malicious input is refused with its file, line and field, or handled like any other input."""
