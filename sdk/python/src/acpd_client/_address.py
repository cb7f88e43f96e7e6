"""Where a daemon is, and how it is reached."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from .errors import InvalidArgumentError

__all__ = ["Address"]

_URL = "give http://HOST:PORT, https://HOST:PORT or unix:PATH"


@dataclass(frozen=True)
class Address:
    """The address of a daemon: `base` without a slash at its end, and the socket for one behind `unix:`."""

    base: str
    socket: str | None = None
    ca: str | None = None

    @classmethod
    def parse(cls, url: str, ca: str | None = None) -> Address:
        """Reads an address. `InvalidArgumentError` names what is wrong with it."""
        if url.startswith("unix:"):
            path = url.removeprefix("unix:").removeprefix("//")
            if not path.startswith("/"):
                raise InvalidArgumentError("url", "the path of a Unix socket is absolute: unix:/PATH")
            return cls("http://localhost", path)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgumentError("url", f"{_URL}, and not {url!r}")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise InvalidArgumentError("url", f"{_URL}; a token is an argument of its own")
        if ca is not None and parts.scheme != "https":
            raise InvalidArgumentError("ca", "certificates are checked with https:// only")
        if ca is not None and not Path(ca).is_file():
            raise InvalidArgumentError("ca", f"there is no file {ca!r}")
        return cls(url.rstrip("/"), None, ca)

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else self.base

    def tls(self) -> ssl.SSLContext | None:
        """What certificates are checked against; none without TLS."""
        return ssl.create_default_context(cafile=self.ca) if self.base.startswith("https:") else None

    def acp(self, agent: str | None) -> str:
        """The URL of ACP over WebSocket, for an agent by its name, or the daemon's default one."""
        query = f"?{urlencode({'agent': agent})}" if agent is not None else ""
        return f"ws{self.base.removeprefix('http')}/acp{query}"
