"""Typed objects from protobuf: messages declared by types, wire types, lists of similar pods."""
