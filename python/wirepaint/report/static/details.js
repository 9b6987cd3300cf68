"use strict";
// What is known of one request, as a panel; and of one request under two conditions, as a table.

/** Time spent from one moment to another. */
function spent(from, until) {
  return from === null || until === null ? "–" : duration(until - from);
}

function titled(name, value) {
  return html("div", {}, html("dt", {}, name), html("dd", {}, value));
}

/** A few lines for the tip beside the pointer. */
function tipOf(object, visit) {
  const connection = visit.connections.get(object.connection);
  const opened = object.first_on_connection && connection;
  return [
    html("p", { class: "tip-title" }, object.url),
    html("dl", {},
      titled("answer", [object.failed ?? object.status, object.type, object.protocol].filter(Boolean).join(" · ")),
      titled("size", size(object.encoded_bytes)),
      titled("priority", `${object.priority ?? "–"}${object.blocking ? ", render-blocking" : ""}`),
      ...(opened ? [titled("connect, TLS", `${spent(connection.opened, connection.connected)}, ${spent(connection.connected, connection.tls_done)}`)] : []),
      titled("wait, receive", `${spent(object.sent, object.first_byte)}, ${spent(object.first_byte, object.last_byte)}`),
      titled("done", duration(object.last_byte))),
  ];
}

/** Fills the panel of a request. */
function fillDetails(panel, object, visit) {
  const connection = visit.connections.get(object.connection);
  panel.hidden = false;
  panel.replaceChildren(
    panelHead(panel, object.url),
    html("div", { class: "columns" },
      html("dl", {}, ...answerFacts(object)),
      html("dl", {}, ...timeFacts(object, connection)),
      html("dl", {}, ...connectionFacts(object, connection))),
    headersOf(object),
  );
}

function panelHead(panel, url) {
  const close = html("button", { type: "button", "aria-label": "Close the details" }, "×");
  close.addEventListener("click", () => (panel.hidden = true));
  return html("div", { class: "details-head" }, html("p", { class: "details-title" }, url), close);
}

function answerFacts(o) {
  return [
    titled("Answer", [o.method, o.failed ?? o.status, o.type].filter(Boolean).join(" · ")),
    titled("Size", `${size(o.encoded_bytes)} transferred, ${size(o.decoded_bytes)} decoded`),
    titled("Priority", o.priority ?? "unknown"),
    titled("Render-blocking", o.blocking ? "yes, by type and priority" : "no"),
    titled("In first view", { true: "yes", false: "no" }[o.in_viewport] ?? "unknown"),
    titled("Caused by", o.initiator ? `${shortName(o.initiator)}${o.initiator_type ? ` (${o.initiator_type})` : ""}` : "the navigation"),
    titled("Served by", o.served_by ?? "unknown"),
  ];
}

function timeFacts(o, connection) {
  const opened = o.first_on_connection && connection;
  return [
    titled("Discovered", duration(o.discovered)),
    titled("Queued", `${spent(o.queued, o.sent)}, from ${duration(o.queued)}`),
    ...(opened ? [titled("Connect", spent(connection.opened, connection.connected)), titled("TLS", spent(connection.connected, connection.tls_done))] : []),
    titled("Sent", duration(o.sent)),
    titled("Wait", spent(o.sent, o.first_byte)),
    titled("Receive", `${spent(o.first_byte, o.last_byte)} in ${o.arrivals.length} arrivals`),
    titled("Done", duration(o.last_byte)),
  ];
}

function connectionFacts(o, connection) {
  if (!connection) return [titled("Connection", "none")];
  const c = connection;
  return [
    titled("Connection", `#${c.connection}${o.first_on_connection ? ", opened for it" : ""}`),
    titled("Protocol", [o.protocol, c.encrypted ? "TLS" : "plain"].filter(Boolean).join(" · ")),
    titled("Server", c.server_address ? `${c.server_address}, port ${c.server_port}` : "unknown"),
    titled("Host", hostOf(o.url)),
    titled("Congestion", `${c.congestion ?? "unknown"}, initial window ${c.initial_window ?? "unknown"}`),
    titled("Smallest RTT", duration(c.min_rtt)),
    titled("It carried", `${c.objects ?? 0} ${c.objects === 1 ? "object" : "objects"}, ${size(c.bytes_received)}, ${c.retransmitted_segments ?? 0} segments again`),
  ];
}

function headersOf(object) {
  if (!object.headers.length) return html("p", { class: "note" }, "The results hold no headers of this answer.");
  const rows = object.headers.map(([name, value]) => titled(name, value));
  return html("details", {}, html("summary", {}, `${object.headers.length} headers of the response, as recorded`), html("dl", { class: "headers" }, ...rows));
}

const COMPARED = [
  ["Discovered", (o) => o.discovered],
  ["Sent", (o) => o.sent],
  ["First byte", (o) => o.first_byte],
  ["Done", (o) => o.last_byte],
  ["Queued for", (o) => between(o.queued, o.sent)],
  ["Waited for", (o) => between(o.sent, o.first_byte)],
  ["Received for", (o) => between(o.first_byte, o.last_byte)],
];

function between(from, until) {
  return from === null || until === null ? null : until - from;
}

/** Fills the panel of one request under two conditions; `names` are theirs. */
function fillPair(panel, pair, names) {
  const cell = (value) => html("td", { class: "number" }, value);
  const rows = COMPARED.map(([title, of]) => {
    const [a, b] = [pair.a && of(pair.a), pair.b && of(pair.b)];
    return html("tr", {}, html("th", { scope: "row" }, title), cell(duration(a)), cell(duration(b)), cell(a === null || b === null ? "–" : signed(b - a)));
  });
  for (const [title, of] of [["Protocol", (o) => o.protocol], ["Priority", (o) => o.priority], ["Connection", (o) => `#${o.connection ?? "?"}`], ["Size", (o) => size(o.encoded_bytes)]]) {
    const text = (object) => (object ? (of(object) ?? "–") : "–");
    rows.push(html("tr", {}, html("th", { scope: "row" }, title), cell(text(pair.a)), cell(text(pair.b)), cell("")));
  }
  const head = [...names, "Difference"].map((name) => html("th", { scope: "col", class: "number" }, name));
  panel.hidden = false;
  panel.replaceChildren(
    panelHead(panel, (pair.a ?? pair.b).url),
    html("div", { class: "wide" }, html("table", {}, html("thead", {}, html("tr", {}, html("td"), ...head)), html("tbody", {}, ...rows))),
  );
}

/** A difference in ms with its sign: "+120 ms", "−1.20 s". */
function signed(ms) {
  if (ms === null) return "–";
  if (Math.abs(ms) < 0.05) return "±0";
  return `${ms > 0 ? "+" : "−"}${duration(Math.abs(ms))}`;
}
