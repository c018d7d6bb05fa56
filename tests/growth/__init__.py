"""How cost grows with the input."""
