// What the types promise, checked by the compiler.

import type {
  PermissionOption,
  SessionUpdate,
  SetSessionConfigOptionResponse,
  StopReason,
} from "@agentclientprotocol/sdk";
import { expectTypeOf, test } from "vitest";
import type {
  AcpConnection,
  AcpdClient,
  AcpdError,
  AcpdEvent,
  EndedEvent,
  KnownKind,
  NetworkError,
  OtherEvent,
  ProblemCode,
  ProblemError,
  Session,
  SessionState,
  TerminalEndedEvent,
  TerminalOutputEvent,
  TerminationInfo,
} from "acpd-client";
import { isProblem, updateOf } from "acpd-client";

// inspector: SDK: precise unions
test("events are told apart by their kind", () => {
  const look = (event: AcpdEvent) => {
    expectTypeOf(event.kind).toExtend<string>();
    switch (event.kind) {
      case "ended":
        expectTypeOf(event).toEqualTypeOf<EndedEvent>();
        expectTypeOf(event.terminationInfo).toEqualTypeOf<TerminationInfo>();
        break;
      case "terminal":
        expectTypeOf(event).toEqualTypeOf<TerminalEndedEvent | TerminalOutputEvent>();
        break;
      case "permission_requested":
        expectTypeOf(event.question.options).toEqualTypeOf<readonly PermissionOption[]>();
        break;
      case "elicitation_requested":
        expectTypeOf(event.question.message).toBeString();
        break;
      default:
        expectTypeOf(event.seq).toBeNumber();
    }
    if (event.kind !== "ended") expectTypeOf(event).not.toExtend<EndedEvent>();
    expectTypeOf(updateOf(event)).toEqualTypeOf<SessionUpdate | undefined>();
  };
  expectTypeOf(look).toBeFunction();
});

// contract 7.3: members and kinds may be added
test("an event of a later version can be written down", () => {
  expectTypeOf<Exclude<AcpdEvent, { kind: KnownKind }>>().toEqualTypeOf<OtherEvent>();
  expectTypeOf<OtherEvent["anything"]>().toBeUnknown();
  expectTypeOf<string>().not.toExtend<KnownKind>();
});

test("states and causes are literals", () => {
  expectTypeOf<SessionState>().toEqualTypeOf<"starting" | "idle" | "running" | "waiting" | "ended">();
  expectTypeOf<TerminationInfo["reason"]>().toEqualTypeOf<"completed" | "error" | "terminated">();
  expectTypeOf<"agent_crash">().toExtend<NonNullable<TerminationInfo["cause"]>>();
  expectTypeOf<Session["terminationInfo"]>().toEqualTypeOf<TerminationInfo | undefined>();
  expectTypeOf<"session_not_found">().toExtend<ProblemCode>();
});

test("errors are told apart", () => {
  const look = (error: AcpdError, unknown: unknown) => {
    if (error.kind === "aborted") expectTypeOf(error).not.toBeAny();
    if (isProblem(unknown, "queue_full")) expectTypeOf(unknown).toEqualTypeOf<ProblemError>();
  };
  expectTypeOf(look).toBeFunction();
  expectTypeOf<NetworkError["kind"]>().toEqualTypeOf<"network">();
});

test("requests of ACP have the types of the official SDK", () => {
  const use = async (connection: AcpConnection) => {
    const set = connection.request("session/set_config_option", { sessionId: "", configId: "", value: "" });
    expectTypeOf(await set).toEqualTypeOf<SetSessionConfigOptionResponse>();
    expectTypeOf(await connection.request("_of/another")).toBeUnknown();
    expectTypeOf((await connection.prompt("id", "text")).stopReason).toEqualTypeOf<StopReason>();
  };
  expectTypeOf(use).toBeFunction();
});

test("what is wrong does not compile", () => {
  const use = (client: AcpdClient) => {
    // @ts-expect-error a session needs a directory
    void client.createSession({});
    // @ts-expect-error a state that is none
    client.listSessions({ state: "sleeping" });
    // @ts-expect-error an option is chosen by its id
    void client.answer("id", 1, { outcome: "selected" });
    void client.connect({
      onPermission: ({ options }) => {
        expectTypeOf(options).toEqualTypeOf<PermissionOption[]>();
        return { outcome: "selected", optionId: "id" };
      },
      // @ts-expect-error a way that is none
      transport: "pigeon",
    });
    // @ts-expect-error a block of ACP has a type that is known
    void client.prompt("id", [{ type: "video" }]);
  };
  expectTypeOf(use).toBeFunction();
});
