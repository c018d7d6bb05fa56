"""Typed objects from protobuf, JSON and YAML, and where their fields are written. It may import `kube`."""
