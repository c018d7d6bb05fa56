"""One run: from the options through sources and evaluation to a report. It may import everything but `cli`."""
