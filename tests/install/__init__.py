"""The plugin as it is released and installed: what `make dist` built, with the real krew, kubectl, pip, pipx and uv."""
