"""How does the monitor run? One run of `monitor`: lists and watches, evaluations, HTTP servers, its own telemetry."""
