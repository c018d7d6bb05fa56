"""The sections of ``explain``: each a pure function of the explanation, "" where it has nothing to say."""
