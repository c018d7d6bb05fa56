"""What the table of ``check`` shows: rows, changes since the last table, and counts of domains in little space."""
