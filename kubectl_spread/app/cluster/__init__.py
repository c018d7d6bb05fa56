"""How is a live cluster read? It may import the modules of `app`, and all rooms below `app`."""
