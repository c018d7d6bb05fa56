"""The content of files named on the command line. It may import `sources.decode`."""
