"""Restores the environment of the user at the start of the archive's programs, for the programs that they start.

PyInstaller's loader sets LD_LIBRARY_PATH to the libraries of the archive, which the dynamic linker has read by now.
Exec plugins of a kubeconfig would load these libraries instead of those of the system.
"""

import os

os.environ.pop("LD_LIBRARY_PATH", None)
_original = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if _original is not None:
    os.environ["LD_LIBRARY_PATH"] = _original
for _name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[_name]
