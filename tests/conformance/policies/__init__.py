"""The policies of ``kubectl spread policy`` on real API servers, compared with ``kubectl spread check -f``."""
