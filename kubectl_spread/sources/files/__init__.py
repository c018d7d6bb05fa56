"""What files named on the command line hold. It may import `sources.decode`."""
