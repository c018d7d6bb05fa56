"""Lists, pages and watches from an API server. It may import `sources.auth` and `sources.decode`."""
