// A `fetch` with which clients of sandbox-agent speak to acpd.
//
// Such a client names its connections itself, in the path. acpd names them, in a header of its answer to `initialize`, and
// wants that header with every later request; all of them are at one path.

export function acpdFetch(send = fetch) {
  const connections = new Map();

  const connectionOf = (name) => {
    if (!connections.has(name)) {
      const connection = { opens: true };
      connection.id = new Promise((resolve) => (connection.opened = resolve));
      connections.set(name, connection);
    }
    return connections.get(name);
  };

  return async (address, request = {}) => {
    const url = new URL(address);
    const name = /^\/v1\/acp\/([^/]+)$/.exec(url.pathname)?.[1];
    if (name === undefined) return send(address, request);

    const connection = connectionOf(name);
    const opens = connection.opens && request.method === "POST";
    if (opens) connection.opens = false;
    const headers = new Headers(request.headers);
    // The client asks for its stream before `initialize` is answered; there is nothing to read until then.
    if (!opens) headers.set("Acp-Connection-Id", await connection.id);
    url.pathname = "/acp";
    const answer = await send(url, { ...request, headers });
    if (opens) connection.opened(answer.headers.get("Acp-Connection-Id"));
    return answer;
  };
}
