"""The answers about new nodes, held against Karpenter's own scheduling package."""
