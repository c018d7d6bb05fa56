"""The mixin: alerts and the dashboard of the monitor."""
