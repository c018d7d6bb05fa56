"""How is the report of `simulate` printed? It may import `report` and the modules of `render`."""
