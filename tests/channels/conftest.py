"""A throwaway certificate for the tests over real sockets."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with key and self-signed certificate for `localhost`."""
    folder = tmp_path_factory.mktemp("tls")
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    names = ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:TRUE"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run([*request, *names, *files], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key").read_bytes() + (folder / "cert").read_bytes())
    return both


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    """What a server on `localhost` presents."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def client_tls(certificate: Path) -> ssl.SSLContext:
    """A client that trusts the throwaway certificate and nothing else."""
    return ssl.create_default_context(cafile=str(certificate))
