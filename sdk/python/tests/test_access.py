"""Tokens, scopes, wrong use: what a caller may do, and what it is told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import get_args

import pytest
from daemon import Daemon

from acpd_client import (
    AcpdClient,
    AcpdError,
    AgentFailedError,
    AgentNotFoundError,
    BadRequestError,
    ConnectionFailedError,
    CursorError,
    ForbiddenError,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    NotResumableError,
    ProblemError,
    ProblemType,
    SessionExistsError,
    SessionNotFoundError,
    SyncAcpdClient,
    TokenLimitError,
    UnauthorizedError,
    UnreadableAnswerError,
    errors,
)


# contract 1.7: who may do what
async def test_a_token_does_what_its_scope_includes(guarded: Daemon, tokens: dict[str, str]) -> None:
    async with AcpdClient(guarded.url) as client:
        with pytest.raises(UnauthorizedError) as unknown:
            await client.whoami()
        assert (unknown.value.status, unknown.value.name) == (401, "unauthorized")
    async with AcpdClient(guarded.url, token=tokens["observe"]) as client:
        assert (await client.whoami()).name == "observe"
        for forbidden in (client.create_session(guarded.work), client.stats()):
            with pytest.raises(ForbiddenError):
                await forbidden
    async with AcpdClient(guarded.url, token=tokens["admin"]) as client:
        assert [token.name for token in await client.tokens()] == sorted(tokens)


# contract 7.2: a token's limits, with what they allow
async def test_a_limit_of_a_token_is_told(guarded: Daemon, tokens: dict[str, str]) -> None:
    async with AcpdClient(guarded.url, token=tokens["limited"]) as client:
        with pytest.raises(TokenLimitError) as beyond:
            await client.create_session("/")
        assert (beyond.value.limit, list(beyond.value.allowed)) == ("roots", [str(guarded.work)])
        limits = (await client.whoami()).limits
        assert limits is not None
        assert limits.agents == ["example"]


# contract 7.3: errors of what begins a run, and of keys and cursors
async def test_refusals_have_types(guarded: Daemon, tokens: dict[str, str]) -> None:
    async with AcpdClient(guarded.url, token=tokens["admin"]) as client:
        session_id = (await client.create_session(guarded.work, idempotency_key="k")).session_id
        await client.terminate_session(session_id)
        file = [piece async for piece in client.export_session(session_id)]

        async def pieces() -> AsyncIterator[bytes]:
            for piece in file:
                yield piece

        cases: list[tuple[Awaitable[object], type[ProblemError], str]] = [
            (client.create_session(guarded.work, agent="broken"), AgentFailedError, "broken|exit"),
            (client.create_session(guarded.work, agent="none"), BadRequestError, "agent"),
            (client.create_session(guarded.work / "not-there"), BadRequestError, "cwd"),
            (client.create_session(guarded.work, "x", idempotency_key="k"), IdempotencyKeyReusedError, "Idempotency"),
            (client.check_agent("none"), AgentNotFoundError, "none"),
            (client.resume(session_id), NotResumableError, "terminated"),
            (client.events_page(session_id, after="x"), CursorError, "cursor"),
            (client.events_page(session_id, after=10**6), CursorError, "last event"),
            (anext(client.events(session_id, after=10**6)), CursorError, "last event"),
            (anext(client.events("none")), SessionNotFoundError, "no session"),
            (client.get_session("a/b?c#d"), SessionNotFoundError, "no session"),
            (client.import_session(pieces()), SessionExistsError, session_id),
        ]
        for refused, kind, words in cases:
            with pytest.raises(kind, match=words) as error:
                await refused
            assert isinstance(error.value, AcpdError)
            assert str(error.value.status) in str(error.value)


# inspector: SDK, every failure a typed exception: all kinds of problems have a type, by name or by status
def test_each_kind_of_problem_has_a_type() -> None:
    kinds = {urn.rpartition(":")[2] for urn in get_args(get_args(ProblemType.__value__)[0])}
    assert set(errors._BY_NAME) <= kinds
    typed = {error for error in map(errors.__dict__.get, errors.__all__) if isinstance(error, type)}
    assert all(issubclass(error, AcpdError) for error in typed)
    assert {*errors._BY_NAME.values(), *errors._BY_STATUS.values(), ProblemError} <= typed


# CONTRIBUTING: wrong use names the field and the fix, and does nothing
@pytest.mark.parametrize(
    ("make", "field", "remedy"),
    [
        (lambda: AcpdClient("localhost:2273"), "url", "http://HOST:PORT"),
        (lambda: AcpdClient("ftp://h"), "url", "unix:PATH"),
        (lambda: AcpdClient("http://"), "url", "http://HOST:PORT"),
        (lambda: AcpdClient("http://token@h"), "url", "a token is an argument"),
        (lambda: AcpdClient("unix:acpd.sock"), "url", "absolute"),
        (lambda: AcpdClient("http://h", ca="x"), "ca", "https"),
        (lambda: AcpdClient("https://h", ca="not-there"), "ca", "no file"),
        (lambda: AcpdClient("http://h", token=""), "token", "visible"),
        (lambda: AcpdClient("http://h", token="a\nb"), "token", "visible"),
        (lambda: AcpdClient("http://h").events("s", after=-1), "after", "0 for all"),
        (lambda: AcpdClient("http://h").events(""), "id", "empty"),
        (lambda: SyncAcpdClient("http://h").get_session(".."), "id", "step"),
        (lambda: SyncAcpdClient("http://h").create_session("work"), "cwd", "absolute"),
        (lambda: SyncAcpdClient("http://h").prompt("s", ""), "prompt", "text"),
        (lambda: SyncAcpdClient("http://h").prompt("s", []), "prompt", "block"),
        (lambda: SyncAcpdClient("http://h").prompt("s", "x", idempotency_key="a b"), "idempotency_key", "visible"),
        (lambda: SyncAcpdClient("http://h").fork("s", additional_directories=["a"]), "additional_directories", "abs"),
    ],
)
def test_wrong_arguments_are_told(make: Callable[[], object], field: str, remedy: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(remedy)) as error:
        make()
    assert error.value.field == field
    assert str(error.value).startswith(field)


# inspector: SDK, every failure a typed exception: what answers is no acpd
async def test_what_is_no_daemon_is_told(tmp_path: Path, shared: Daemon) -> None:
    async with AcpdClient(f"{shared.url}/elsewhere") as client:
        with pytest.raises(ProblemError) as error:
            await client.whoami()
        assert error.value.status == 404
    async with AcpdClient(f"unix:{tmp_path}/none.sock") as client:
        with pytest.raises(ConnectionFailedError, match=re.escape("none.sock")):
            await client.health()
    with pytest.raises(UnreadableAnswerError, match="405"):
        raise errors.problem_error(405, b"no")
