"""A proxy in front of a real apiserver, with the faults of networks, proxies and overloaded servers."""
