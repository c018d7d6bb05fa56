"""Typed objects from protobuf: messages declared by types, lists of similar pods."""
