"""kubectl-spread: do pods select what their topology spread constraints say, and how skewed are they?"""

__version__ = "0.1.0"
