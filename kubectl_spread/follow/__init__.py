"""What does a cluster look like now? Lists and watches keep a store, and `check` runs on it again and again."""
