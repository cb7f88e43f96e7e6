"""Prompts an agent, shows its answer as it comes, and says how the turn ended: turn.py URL DIRECTORY PROMPT."""

import asyncio
import sys

from acpd_client import AcpdClient, EndedEvent, TurnEndedEvent, agent_text


async def main(url: str, directory: str, prompt: str) -> int:
    """Gives 0 for a turn that ended well."""
    async with AcpdClient(url) as client:
        # The daemon closes the session behind its turn, whether or not this program is still there.
        session = await client.create_session(directory, prompt, close_after_turn=True)
        status = 1
        async for event in client.events(session.session_id):
            print(agent_text(event), end="", flush=True)
            match event:
                case TurnEndedEvent(stop_reason=reason):
                    print(f"\n[the turn ended: {reason or 'with an error'}]")
                    status = 0 if reason == "end_turn" else 1
                case EndedEvent(termination_info=end) if end.reason == "error":
                    print(f"[the agent ended: {end.message}]")
                    print((end.stderr and (end.stderr.tail or end.stderr.head)) or "")
        return status


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
