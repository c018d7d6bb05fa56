"""What is true about these pods: snapshot, groups, verdicts, report. Pure: no I/O, no clock."""
