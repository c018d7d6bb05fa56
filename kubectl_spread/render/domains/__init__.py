"""How is the report of `domains` printed? It may import `report` and the modules of `render`."""
