"""The commands that follow a cluster: `check --watch` and `monitor`. They may import what commands may."""
