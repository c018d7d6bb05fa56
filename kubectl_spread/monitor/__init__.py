"""The monitor: a report that is kept current by changes of objects; only what a change affects is evaluated again."""
