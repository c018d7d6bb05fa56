"""SPR1xx: stored selectors, compared with the selectors that the API server would store today."""
