"""SPR1xx: stored selectors, compared with those that the API server would store today."""
