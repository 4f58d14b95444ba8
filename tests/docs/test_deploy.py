"""The files in ``deploy/`` are what systemd, Kubernetes and tercet accept."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tercet.settings.serve_sources import server_config

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCUMENTS: list[Any] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
KUBERNETES = "1.30"


def test_the_settings_of_the_service_are_settings_of_the_server() -> None:
    config = server_config(DEPLOY / "server.toml", options={})
    assert config.serve.keys_file == "/etc/tercet/keys"
    assert config.serve.is_local


def test_the_service_stops_after_the_server_has_answered() -> None:
    unit = (DEPLOY / "tercet.service").read_text(encoding="utf-8")
    found = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert found
    assert int(found[1]) > server_config(DEPLOY / "server.toml", options={}).serve.drain_seconds


@pytest.mark.slow
def test_systemd_accepts_the_service(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    unit = (DEPLOY / "tercet.service").read_text(encoding="utf-8")
    here = re.sub(
        r"^(User|Group)=.*\n", "", unit.replace("/opt/tercet/bin/tercet", "/bin/true"), flags=re.MULTILINE
    )
    (tmp_path / "tercet.service").write_text(here)
    checked = subprocess.run(
        [analyze, "verify", str(tmp_path / "tercet.service")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_kubernetes_accepts_the_manifest(document: Any) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    validator.validate(document, KUBERNETES, strict=True)


def test_the_probes_of_the_pod_are_routes_of_the_server() -> None:
    (deployment,) = (each for each in DOCUMENTS if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    paths = {
        container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert paths == {"/health/ready", "/health/live"}
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 30
