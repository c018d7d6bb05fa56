"""Write the picture of docs/monitor.md, of the page that a monitor serves; run as a module (``make screenshot``)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.browser.chromium import PAINTED, launched, program
from tests.controlplane.cluster import ControlPlane
from tests.e2e import alarming
from tests.e2e.monitored import monitoring
from tests.e2e.spread import Plugin
from tests.generated import ROOT


def main() -> None:
    """Open the page of a cluster with faults."""
    path = program()
    if path is None:
        raise SystemExit("there is no Chromium")
    with tempfile.TemporaryDirectory() as directory:
        cluster_directory = Path(directory, "cluster")
        cluster_directory.mkdir()
        with ControlPlane.start(cluster_directory, kubelet=True) as cluster:
            cluster.add_nodes()
            alarming.make_healthy(cluster)
            alarming.make_faults(cluster)
            environment = Plugin(Path(directory, "plugins")).on(cluster).environment
            with monitoring(environment, "-A", "--cluster-name=shop-eu") as monitor, launched(path) as browser:
                page = browser.new_page(viewport={"width": 1120, "height": 990}, color_scheme="light")
                page.goto(f"http://{monitor.addresses[0]}/")
                page.evaluate(PAINTED)
                page.screenshot(path=ROOT / "docs" / "monitor.png")


if __name__ == "__main__":
    main()
