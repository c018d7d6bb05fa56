"""Commands are safe to paste, and name the cluster that was read."""

from __future__ import annotations

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report.model import Operation
from kubectl_spread.rules.remedy import line, patched

WEB = ObjectRef("shop", "Deployment", "web")
MAX_SKEW = "/spec/template/spec/topologySpreadConstraints/0/maxSkew"


def test_a_patch_is_applied_by_one_command() -> None:
    operations = [Operation(op="test", path=MAX_SKEW, value=1), Operation(op="replace", path=MAX_SKEW, value=2)]
    assert line(patched(WEB, operations), ["--context", "prod eu"]) == (
        "kubectl --context 'prod eu' patch deploy/web -n shop --type=json -p "
        f"""'[{{"op":"test","path":"{MAX_SKEW}","value":1}},{{"op":"replace","path":"{MAX_SKEW}","value":2}}]'"""
    )


def test_a_patch_that_only_removes_has_no_value() -> None:
    command = patched(WEB, [Operation(op="remove", path=MAX_SKEW)])
    assert command[-1] == f'[{{"op":"remove","path":"{MAX_SKEW}"}}]'
