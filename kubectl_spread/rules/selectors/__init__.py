"""SPR1xx: the stored selector against the one that the API server would store."""
