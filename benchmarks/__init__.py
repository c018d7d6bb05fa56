"""Benchmarks: measured side by side against the real control plane, apart from the tests."""
