import type { Step } from "../e2e/steps";

const DIFF = {
  toolCallId: "edit-1",
  title: "Edit src/parse.rs",
  kind: "edit",
  rawInput: { path: "src/parse.rs", replace: "skip_blank(line)", with: "line.trim()" },
  locations: [{ path: "/srv/parser/src/parse.rs", line: 12 }],
  content: [
    {
      type: "diff",
      path: "/srv/parser/src/parse.rs",
      oldText: "fn field(line: &str) -> &str {\n    skip_blank(line)\n}\n",
      newText: "fn field(line: &str) -> &str {\n    line.trim()\n}\n",
    },
  ],
};

const say = (text: string): Step => ({ update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });
const think = (text: string): Step => ({ update: { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } } });
const call = (toolCallId: string, title: string, kind: string, output: string): Step[] => [
  { update: { sessionUpdate: "tool_call", toolCallId, title, kind, status: "in_progress" } },
  { update: { sessionUpdate: "tool_call_update", toolCallId, status: "completed", content: [{ type: "content", content: { type: "text", text: output } }] } },
];

/** What the agent of the pictures does for a prompt. */
export const SCENES: Readonly<Record<string, readonly Step[]>> = {
  "Why do the parser tests fail, and how do we mend it?": [
    think("The fixture has a line that ends in blanks. Look at how a field is read."),
    ...call("read-1", "Read src/parse.rs", "read", "fn field(line: &str) -> &str {\n    skip_blank(line)\n}"),
    ...call("run-1", "cargo test parse", "execute", "test parse::trailing ... FAILED\n1 failed, 41 passed"),
    {
      update: {
        sessionUpdate: "plan",
        entries: [
          { content: "Find the failing case", priority: "high", status: "completed" },
          { content: "Trim both ends of a field", priority: "high", status: "in_progress" },
          { content: "Run the tests again", priority: "medium", status: "pending" },
        ],
      },
    },
    say("`skip_blank` takes blanks away **at the beginning only**. The failing case ends in two of them:\n\n```rust\nassert_eq!(field(\"  name  \"), \"name\");\n```\n\nI would trim both ends:"),
    {
      ask: {
        toolCall: DIFF,
        options: [
          { optionId: "once", name: "Allow this change", kind: "allow_once" },
          { optionId: "always", name: "Allow all changes", kind: "allow_always" },
          { optionId: "no", name: "Reject", kind: "reject_once" },
        ],
      },
    },
    { update: { sessionUpdate: "tool_call_update", toolCallId: "edit-1", status: "completed" } },
    ...call("run-2", "cargo test parse", "execute", "42 passed"),
    say("All 42 tests pass now."),
  ],
  "Write the release notes": [say("## 1.4\n\n- Fields are trimmed at both ends.\n- `--strict` tells the line and the column.\n")],
  "Update the dependencies": [...call("run-1", "npm outdated", "execute", "vite 7.3.1 -> 7.3.8"), say("One of them is behind: `vite`.")],
};
