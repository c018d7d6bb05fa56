"""How is the report of `plan` printed? It may import `report` and the modules of `render`."""
