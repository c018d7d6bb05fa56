"""Builds a release: wheel, sdist, an archive for this platform with its SBOM, and the krew manifest.

A build needs Python, and binutils on Linux. Everything that it installs is pinned in ``release/locks``.
"""
