"""How is a report printed? One module for each format, which takes a report and returns text."""
