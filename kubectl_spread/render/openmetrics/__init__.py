"""Which metrics does a report have? Gauges in the text format of Prometheus 0.0.4, which OpenMetrics 1.0.0 shares."""
