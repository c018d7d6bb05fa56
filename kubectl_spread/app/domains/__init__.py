"""What is lost with a domain? One run of `domains`. It may import the modules of `app`, and all rooms below `app`."""
