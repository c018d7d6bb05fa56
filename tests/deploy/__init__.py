"""The manifests, the chart and the image in ``deploy``."""
