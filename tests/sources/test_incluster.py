"""A pod logs in with its service account."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.auth import incluster
from kubectl_spread.sources.auth.connection import ConnectionFlags, Settings, settings
from tests.controlplane.certificates import Authority

_ENVIRONMENT: Final = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBECONFIG": "/no/where",
}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a service account, which has only a token and a namespace."""
    monkeypatch.setattr(incluster, "DIRECTORY", tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("shop\n")
    return tmp_path


def test_the_service_account_names_server_authority_token_and_namespace(account: Path) -> None:
    Authority(account)
    cluster = {"server": "https://10.0.0.1:443", "certificate-authority": str(account / "ca.crt")}
    assert settings(ConnectionFlags(), _ENVIRONMENT) == Settings(cluster, {"tokenFile": str(account / "token")}, "shop")


@pytest.mark.parametrize(
    ("authority", "reason"),
    [
        (None, "Service certification file does not exist."),
        ("", "Cert file exists but empty."),
    ],
    ids=["missing", "empty"],
)
def test_a_service_account_without_an_authority_cannot_log_in(
    authority: str | None, reason: str, account: Path
) -> None:
    if authority is not None:
        (account / "ca.crt").write_text(authority)
    with pytest.raises(SourceError) as refused:
        settings(ConnectionFlags(), _ENVIRONMENT)
    assert str(refused.value) == f"cannot log in with the pod's service account: {reason}"


def test_a_pod_without_a_token_has_no_service_account(account: Path) -> None:
    (account / "token").unlink()
    assert settings(ConnectionFlags(), _ENVIRONMENT).cluster["server"] == "http://localhost:8080"


@pytest.mark.parametrize(
    ("environment", "namespace"), [({}, "shop"), ({"POD_NAMESPACE": "other"}, "other")], ids=["file", "variable"]
)
def test_the_namespace_is_that_of_the_pod(environment: dict[str, str], namespace: str, account: Path) -> None:
    Authority(account)
    assert settings(ConnectionFlags(), {**_ENVIRONMENT, **environment}).namespace == namespace
