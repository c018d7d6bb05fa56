"""Runs in the archive's programs before all else: what they start gets the environment that the user gave them.

PyInstaller's loader points LD_LIBRARY_PATH to the archive's own libraries, which the dynamic linker has
read by now. Exec plugins of a kubeconfig would load them instead of the system's.
"""

import os

os.environ.pop("LD_LIBRARY_PATH", None)
_original = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if _original is not None:
    os.environ["LD_LIBRARY_PATH"] = _original
for _name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[_name]
