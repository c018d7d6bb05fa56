"""Changes to the values of a manifest that keep comments, order, quotes and anchors; it may import `sources.decode`."""
