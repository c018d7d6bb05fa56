"""What ``domains`` says is lost with a zone is what an outage of that zone takes away in a simulation."""

from __future__ import annotations

import json
from typing import Any

from tests.builders import ZONE
from tests.cli.test_check import run
from tests.plan import small
from tests.simulate.clusters import simulated

SEEDS = range(40)


def test_domains_loses_what_an_outage_takes_away() -> None:
    compared = 0
    for seed in SEEDS:
        objects = small.cluster_of(f"losses-{seed}", varied=True)
        text = "\n".join(map(json.dumps, objects))
        for zone in sorted({each["metadata"]["labels"][ZONE] for each in objects if each["kind"] == "Node"}):
            counted = json.loads(run("domains", "zone", zone, "-f", "-", "-o", "json", stdin=text).stdout)
            outage = {_name(row): row for row in simulated(objects, "--lose", f"zone={zone}")["workloads"]}
            for row in counted["workloads"]:
                simulated_row = outage[_name(row)]
                assert (row["here"], row["left"]) == (
                    simulated_row["lost"],
                    simulated_row["before"]["running"] - simulated_row["lost"],
                ), (seed, zone, row)
                assert simulated_row["least"]["min"] <= row["left"], (seed, zone, row)
                compared += 1
    assert compared > 200


def _name(row: Any) -> str:
    return f"{row['workload']['kind']}/{row['workload']['name']}"
