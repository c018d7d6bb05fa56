"""Builds what is released: wheel, sdist, an archive for this platform with its SBOM, and the krew manifest.

Needs nothing but Python, and binutils on Linux; what it installs is pinned in ``release/locks``.
"""
