"""Changes to the text of a manifest that keep every other byte. It may import `sources.files` and `sources.decode`."""
