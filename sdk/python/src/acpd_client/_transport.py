"""What both transports have in common: how failures of HTTP are told."""

from __future__ import annotations

import ssl

import httpx

from ._version import __version__
from .errors import (
    AcpdError,
    CertificateError,
    ConnectionFailedError,
    ConnectionLostError,
    InvalidArgumentError,
    SilenceError,
)

__all__ = ["SILENCE", "failure", "headers"]

SILENCE = 60.0
"""Seconds without a byte after which a stream is lost; the daemon says something every 15 s."""


def headers(token: str | None) -> dict[str, str]:
    """What every request carries."""
    own = {"User-Agent": f"acpd-client/{__version__}"}
    if token is None:
        return own
    if not token or not all("!" <= char <= "~" for char in token):
        raise InvalidArgumentError("token", "it has to be visible ASCII characters without spaces")
    return {**own, "Authorization": f"Bearer {token}"}


def failure(error: httpx.RequestError, at: str) -> AcpdError:
    """What a failure of HTTP is, with the place of the daemon."""
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return CertificateError(f"the certificate of {at} is not accepted: {error}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ConnectionFailedError(f"no daemon answers at {at}: {error}")
    if isinstance(error, httpx.TimeoutException):
        return SilenceError(f"the daemon at {at} says nothing")
    return ConnectionLostError(f"the connection to {at} was lost: {error}")


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
