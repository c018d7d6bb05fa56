"""Formats that CI systems read."""
