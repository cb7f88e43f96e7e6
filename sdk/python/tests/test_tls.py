"""A daemon with TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import acp
import pytest
from daemon import serving
from test_acp import Person

from acpd_client import AcpdClient, CertificateError, ConnectionLostError
from acpd_client.acp import connect_agent

# As docs/operations.md has it.
OPENSSL = """openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=acpd.example.org -extensions v3_req
-addext subjectAltName=DNS:acpd.example.org,IP:127.0.0.1 -keyout key.pem -out fullchain.pem"""


# docs/operations.md, TLS: a certificate of one's own is named, any other refused
async def test_a_certificate_is_checked(tmp_path: Path) -> None:
    subprocess.run(OPENSSL.split(), cwd=tmp_path, check=True, capture_output=True)  # noqa: ASYNC221
    config = '[server]\ntls_cert = "fullchain.pem"\ntls_key = "key.pem"\n'
    with serving(tmp_path, config) as daemon:
        assert daemon.url.startswith("https:")
        ca = str(tmp_path / "fullchain.pem")
        async with AcpdClient(daemon.url, ca=ca) as client:
            session = await client.create_session(daemon.work)
            async with connect_agent(client, Person()) as agent:
                await agent.initialize(acp.PROTOCOL_VERSION)
                await agent.load_session(str(daemon.work), session.session_id)
        async with AcpdClient(daemon.url) as client:
            with pytest.raises(CertificateError, match="is not accepted"):
                await client.whoami()
            with pytest.raises(CertificateError, match="is not accepted"):
                async with connect_agent(client, Person()):
                    pytest.fail("it is not known")
        async with AcpdClient(daemon.url.replace("https:", "http:"), retry_for=0) as client:
            with pytest.raises(ConnectionLostError):
                await client.whoami()
