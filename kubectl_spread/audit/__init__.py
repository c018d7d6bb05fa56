"""Which facts hold about the pods? Snapshot, verdicts, counts; no input or output, no clock."""
