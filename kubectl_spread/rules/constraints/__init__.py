"""SPR2xx: constraints and templates, whatever the pods and nodes are."""
