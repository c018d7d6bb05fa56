"""Reports as text: one module a format; a renderer is report in, text out."""
