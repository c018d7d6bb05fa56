"""The sections of ``explain``: each is a pure function of the explanation, and returns "" where it does not apply."""
