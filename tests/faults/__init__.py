"""A proxy in front of a real apiserver that does what networks, proxies and overloaded servers do."""
