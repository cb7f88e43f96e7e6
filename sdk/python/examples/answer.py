"""Answers what the agents of all waiting sessions ask, on the terminal: answer.py URL.

The types of the questions are those of ACP's official SDK: it needs `acpd-client[acp]`.
"""

import sys

from acp.schema import RequestPermissionRequest

from acpd_client import PermissionRequestedEvent, QuestionClosedError, Session, SyncAcpdClient


def open_questions(client: SyncAcpdClient, session: Session) -> list[PermissionRequestedEvent]:
    """The permission requests of a session that wait for an answer."""
    snapshot = client.get_session(session.session_id).snapshot
    numbers = [q["request"] for q in snapshot.open_permission_requests if isinstance(q, dict)]
    first = min((n for n in numbers if isinstance(n, int)), default=1)
    page = client.events_page(session.session_id, after=first - 1, limit=1000)
    return [e for e in page.events if isinstance(e, PermissionRequestedEvent) and e.seq in numbers]


def main(url: str) -> None:
    """Asks for each question once."""
    with SyncAcpdClient(url) as client:
        for session in client.list_sessions(state="waiting"):
            for question in open_questions(client, session):
                asked = RequestPermissionRequest.model_validate(question.message["params"])
                print(f"{session.agent} in {session.cwd}: {asked.tool_call.title}")
                for number, option in enumerate(asked.options, 1):
                    print(f"  {number} {option.name}")
                chosen = asked.options[int(input("> ")) - 1]
                try:
                    client.answer(
                        session.session_id, question.seq, {"outcome": "selected", "optionId": chosen.option_id}
                    )
                except QuestionClosedError:
                    print("  somewhere else it was answered first")


if __name__ == "__main__":
    main(*sys.argv[1:])
