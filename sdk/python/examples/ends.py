"""Says of each live session how it ended, when it does, and leaves when there is none left: ends.py URL."""

import asyncio
import sys

from acpd_client import AcpdClient, TerminationInfo


def line(session_id: str, end: TerminationInfo) -> str:
    """An end in one line."""
    how = {"exit code": end.exit_code, "signal": end.signal, "cause": end.cause, "by": end.initiator}
    told = ", ".join(f"{name} {value}" for name, value in how.items() if value is not None)
    return f"{session_id}: {end.reason} ({told})"


def watch(client: AcpdClient, session_id: str) -> asyncio.Task[None]:
    """Prints how a session ended, when it does."""
    return client.on_session_ended(session_id, lambda end: print(line(session_id, end)))


async def main(url: str) -> None:
    """Watches all of them at once; restarts of the daemon are waited out."""
    async with AcpdClient(url) as client:
        watches = [watch(client, session.session_id) async for session in client.list_sessions(ended=False)]
        print(f"{len(watches)} live", flush=True)
        await asyncio.gather(*watches)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
