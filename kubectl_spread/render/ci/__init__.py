"""Formats that CI systems and policy tools read."""
