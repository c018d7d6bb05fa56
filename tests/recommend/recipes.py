"""Ten recipes of guides for a Deployment of six replicas in three zones: what each leaves, and what is recommended."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from tests.builders import HOSTNAME, Json, selector
from tests.recommend.asked import NINE, SPREAD, changes, host, recommended, spread
from tests.simulate.clusters import deployment

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_EVENTS: Final = ("lose any zone", "drain any zone", "drain any node", "restart, zone closed")
_LAST: Final = "restart, then lose a zone"
_SHORT: Final = {
    "nodeTaintsPolicy: Honor in the constraint on zone": "Honor",
    "matchLabelKeys: [pod-template-hash] in the constraint on zone": "hash",
    "matchLabelKeys: [pod-template-hash] in the constraint on hostname": "host hash",
    "no minDomains in the constraint on zone": "no minDomains",
    "a constraint on zone (ScheduleAnyway)": "zone soft, hash",
    "a constraint on hostname (ScheduleAnyway)": "host soft",
}


class Recipe(NamedTuple):
    """A recipe: its name, the guides that give it, and the fields of the pod template."""

    name: str
    guides: str
    fields: Json


def _constraints(*constraints: Json) -> Json:
    return {"topologySpreadConstraints": list(constraints)}


_APART: Final = {"labelSelector": selector({"app": "web"}), "topologyKey": HOSTNAME}
RECIPES: Final = (
    Recipe("nothing", "", {}),
    Recipe("host soft", "AKS Deployment Safeguards", _constraints(host())),
    Recipe("zone and host soft", "AWS", _constraints(spread(hard=False), host())),
    Recipe("zone hard", "Karpenter's chart", _constraints(spread())),
    Recipe("zone hard, hash", "", _constraints(spread(hashed=True))),
    Recipe("zone hard, hash, minDomains 3", "Karpenter's FAQ", _constraints(spread(hashed=True, minDomains=3))),
    Recipe("zone hard, hash, Honor", "", _constraints(spread(hashed=True, honor=True))),
    Recipe("zone hard, host hard", "", _constraints(spread(), spread(HOSTNAME))),
    Recipe("host anti-affinity", "kube-linter", {"affinity": {"podAntiAffinity": {_REQUIRED: [_APART]}}}),
    Recipe(
        "zone hard, host soft, hash, Honor",
        "",
        _constraints(spread(hashed=True, honor=True), host(hashed=True)),
    ),
)


def report(recipe: Recipe) -> Any:
    """Return the recommendation for a Deployment with a recipe, on nine nodes with room."""
    cluster = [*NINE, *json.loads(json.dumps(deployment("web", SPREAD, **recipe.fields)))]
    return recommended(cluster, "deploy/web", "--runs", "10")


def table() -> str:
    """Return the recipes as a table of Markdown: the running pods after each event, and the change."""
    rows: list[tuple[str, ...]] = [("recipe", "guide", *_EVENTS, _LAST, "recommended"), ("---",) * 8]
    for recipe in RECIPES:
        answer = report(recipe)
        after = {event["event"]: event["now"] for event in answer["events"]}
        texts = [_SHORT.get(text, text) for text in changes(answer)]
        numbers = [f"{after[event]['running']}{_waiting(after[event]['pending'])}" for event in _EVENTS]
        at_once = f"{after[_LAST]['least']} at once"
        advice = ", ".join(texts) or ("no change is enough" if answer["notReachable"] else "nothing")
        rows.append((recipe.name, recipe.guides, *numbers, at_once, advice))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _waiting(pods: int) -> str:
    return f", {pods} wait" if pods else ""
