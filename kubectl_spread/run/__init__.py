"""How does one run go from its options through sources and evaluation to a report? It may not import `cli`."""
