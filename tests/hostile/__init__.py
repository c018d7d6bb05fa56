"""Input that is meant to harm: it is refused by file, line and field, or handled like any other."""
