"""Plans of evictions for small clusters."""
