"""SPR3xx: the nodes of pods, and the nodes that the next pod may use."""
