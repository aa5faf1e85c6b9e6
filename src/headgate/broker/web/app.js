// The broker's page. Tickets stay in this browser; nothing is loaded from anywhere else.

const $ = (id) => document.getElementById(id);
const store = {
  get tickets() { return JSON.parse(localStorage.getItem("headgate.tickets") || "{}"); },
  set tickets(value) { localStorage.setItem("headgate.tickets", JSON.stringify(value)); },
};
const counts = new Map();
const names = new Map();

function headers(more = {}) {
  const made = { ...more };
  if ($("key").value) made["Headgate-Key"] = $("key").value;
  const tickets = Object.entries(store.tickets).slice(-200).map(([id, t]) => `${id}:${t}`).join(", ");
  if (tickets) made["Headgate-Tickets"] = tickets;
  return made;
}

async function call(method, path, body, more = {}) {
  const sent = { method, headers: headers({ ...more, ...(body ? { "Content-Type": "application/json" } : {}) }) };
  if (body) sent.body = JSON.stringify(body);
  const answer = await fetch(path, sent);
  const kind = answer.headers.get("content-type") || "";
  if (!answer.ok) {
    const problem = kind.includes("json") ? await answer.json() : { detail: answer.statusText };
    throw Object.assign(new Error(problem.detail), { problem });
  }
  if (kind.includes("svg")) return answer.blob();
  return answer.status === 204 ? null : answer.json();
}

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// -- the editor

function showProblems(problems) {
  const shown = problems.map((p) => `${p.caret ? p.caret + "\n" : ""}${p.message}${p.hint ? "\n  hint: " + p.hint : ""}`);
  $("problems").textContent = shown.join("\n\n");
  $("problems").classList.remove("fine");
  $("text").setAttribute("aria-invalid", "true");
}

function draft() {
  return { text: $("text").value, stream: $("stream").value || null, missing: $("missing").value };
}

let timer = 0;
async function check() {
  if (!$("text").value.trim()) { $("problems").textContent = ""; return; }
  try {
    const found = await call("POST", "/v1/check", draft());
    if (found.fine) {
      $("problems").textContent = "no mistakes";
      $("problems").classList.add("fine");
      $("text").removeAttribute("aria-invalid");
    } else showProblems(found.problems);
  } catch (error) { $("problems").textContent = error.message; }
}
for (const id of ["text", "stream", "missing"]) {
  $(id).addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, 250); });
}
$("delivery").addEventListener("change", () => { $("target-field").hidden = $("delivery").value === "stream"; });

$("subscribe").addEventListener("submit", async (event) => {
  event.preventDefault();
  const delivery = { kind: $("delivery").value };
  if (delivery.kind === "webhook") delivery.url = $("target").value;
  if (delivery.kind === "kafka") delivery.topic = $("target").value;
  const body = { ...draft(), validity: Number($("validity").value), delivery };
  if ($("name").value) body.name = $("name").value;
  const before = last ?? 0;
  try {
    const made = await call("POST", "/v1/subscriptions", body);
    store.tickets = { ...store.tickets, [made.id]: made.ticket };
    $("subscribed").textContent = `Subscribed. The ticket is kept in this browser: ${made.ticket}` +
      (made.signing_key ? `; webhooks are signed with ${made.signing_key}` : "");
    last = before; // The new one may have matched while the feed was ahead of it.
    await list();
    listen();
  } catch (error) {
    $("subscribed").textContent = `Not subscribed: ${error.message}`;
    if (error.problem && error.problem.problems) showProblems(error.problem.problems.filter((p) => p.message && p.caret !== undefined));
  }
});

// -- one's own

async function list() {
  const page = await call("GET", "/v1/subscriptions?limit=200");
  const rows = page.subscriptions.map((s) => {
    names.set(s.id, s.name || s.text || s.id);
    const row = element("tr", undefined, { "data-id": s.id });
    row.append(element("td", s.name || "—"));
    const text = element("td");
    text.append(element("code", s.text || ""));
    row.append(text, element("td", s.stream || ""));
    const state = element("td", s.waiting ? `${s.state}; delivery waits: ${s.waiting}` : s.state, { class: `state-${s.state}` });
    row.append(state, element("td", new Date(s.expires * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" })));
    row.append(element("td", String(counts.get(s.id) || 0), { class: "count" }));
    const actions = element("td");
    const ticket = store.tickets[s.id];
    if (ticket) {
      for (const [label, act] of [["Renew", renew], ["Unsubscribe", unsubscribe]]) {
        const button = element("button", label, { type: "button", class: "small plain", "aria-label": `${label} ${s.name || s.text}` });
        button.addEventListener("click", () => act(s.id, ticket));
        actions.append(button, " ");
      }
    }
    row.append(actions);
    return row;
  });
  $("mine").replaceChildren(...rows);
}

async function renew(id, ticket) {
  await call("PUT", `/v1/subscriptions/${id}/validity`, { validity: Number($("validity").value) }, { Authorization: `Bearer ${ticket}` });
  await list();
}

async function unsubscribe(id, ticket) {
  await call("DELETE", `/v1/subscriptions/${id}`, undefined, { Authorization: `Bearer ${ticket}` });
  const left = store.tickets;
  delete left[id];
  store.tickets = left;
  await list();
  listen();
}

// -- the feed: server-sent events, read by fetch, so that tickets travel in headers and never in an address

let stop = new AbortController();
let last = null; // the number to resume after; it grows only, but for a new subscription
const shown = new Set();
async function listen() {
  stop.abort();
  stop = new AbortController();
  const signal = stop.signal;
  while (!signal.aborted && (Object.keys(store.tickets).length || $("key").value)) {
    try {
      const answer = await fetch("/v1/feed", { headers: headers(last === null ? {} : { "Last-Event-ID": String(last) }), signal });
      if (!answer.ok) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const lines = part.split("\n");
          const data = lines.find((line) => line.startsWith("data: {\"seq\""));
          const id = lines.find((line) => line.startsWith("id: "));
          if (data) show(JSON.parse(data.slice(6)));
          if (id) last = Number(id.slice(4));
        }
      }
    } catch (error) { if (signal.aborted) return; }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function show(note) {
  if (shown.has(note.seq)) return;
  shown.add(note.seq);
  if (shown.size > 20000) shown.delete(shown.values().next().value);
  counts.set(note.subscription, (counts.get(note.subscription) || 0) + 1);
  const row = document.querySelector(`#mine tr[data-id="${CSS.escape(note.subscription)}"] .count`);
  if (row) row.textContent = String(counts.get(note.subscription));
  $("feed-empty").hidden = true;
  const item = element("li", undefined, { "data-subscription": note.subscription });
  item.append(element("strong", names.get(note.subscription) || note.subscription), " ");
  item.append(element("time", new Date(note.matched * 1000).toLocaleTimeString()));
  if (note.published) item.append(element("time", ` after ${Math.round((note.matched - note.published) * 1000)} ms`));
  item.append(element("br"), element("code", JSON.stringify(note.data)));
  if (note.output) item.append(element("br"), element("code", JSON.stringify(note.output)));
  $("feed").prepend(item);
  while ($("feed").children.length > 200) $("feed").lastChild.remove();
}

// -- trying and publishing

function given() {
  try { return JSON.parse($("event").value); } catch (error) { throw new Error(`this is not JSON: ${error.message}`); }
}

$("do-try").addEventListener("click", async () => {
  try {
    const body = { event: given() };
    if ($("stream").value) body.stream = $("stream").value;
    if ($("text").value.trim() && $("text").getAttribute("aria-invalid") !== "true") body.drafts = [draft()];
    const found = await call("POST", "/v1/try", body);
    const items = found.verdicts.map((v) => {
      const item = element("li", undefined, { "data-id": v.id });
      item.append(element("span", v.matched ? "matches " : "does not match ", { class: v.matched ? "yes" : "no" }));
      item.append(element("strong", v.name || (v.id.startsWith("draft") ? "the text in the editor" : v.id)), " ", element("code", v.text));
      if (!v.matched && v.blocking.length) item.append(element("p", `It would match if this changed: ${v.blocking.join("; ")}`));
      item.append(element("pre", v.why));
      return item;
    });
    $("verdicts").replaceChildren(...(items.length ? items : [element("li", "There is no subscription of yours to try.")]));
    $("published").textContent = "";
  } catch (error) { $("published").textContent = error.message; }
});

$("do-publish").addEventListener("click", async () => {
  try {
    const stream = $("stream").value;
    if (!stream) throw new Error("choose a stream above");
    const done = await call("POST", `/v1/streams/${encodeURIComponent(stream)}/events`, given());
    $("published").textContent = `Published ${done.accepted} to ${stream}.` +
      (done.unfit ? ` ${done.unfit} cannot be matched: ${done.problems[0].reason}` : "");
    if (done.unfit) setTimeout(errors, 500);
  } catch (error) { $("published").textContent = `Not published: ${error.message}`; }
});

// -- pictures

async function draw(wish, said) {
  try {
    const blob = await call("POST", "/v1/picture", wish);
    $("picture").src = URL.createObjectURL(blob);
    $("picture").alt = said;
    $("picture").hidden = false;
    $("picture-note").textContent = said;
  } catch (error) { $("picture-note").textContent = error.message; $("picture").hidden = true; }
}
$("draw").addEventListener("click", () => {
  const kind = /^\s*select\b/i.test($("text").value) ? "automaton" : "diagram";
  draw({ kind, ...draft() }, kind === "automaton" ? `Automaton of ${$("text").value}` : `Decision diagram of ${$("text").value}`);
});
$("cover").addEventListener("click", () => draw({ kind: "cover" }, "Which of my subscriptions cover others"));
$("do-tree").addEventListener("click", () => {
  try { draw({ kind: "tree", ...draft(), event: given() }, `Matching tree of ${$("text").value}`); } catch (error) { $("picture-note").textContent = error.message; }
});

// -- the error channel

async function errors() {
  const found = await call("GET", "/v1/errors?limit=20");
  const items = found.errors.reverse().map((e) => {
    const item = element("li", undefined, { "data-code": e.code });
    item.append(element("strong", `${e.stream || "no stream"}, event ${e.event || "unknown"}: `), e.reason, " ");
    item.append(element("time", new Date(e.at * 1000).toLocaleTimeString()));
    for (const id of e.subscriptions || []) item.append(element("br"), `for ${names.get(id) || id}`);
    if (e.text) item.append(element("br"), element("code", e.text.slice(0, 500)));
    return item;
  });
  $("errors").replaceChildren(...items);
  $("errors-empty").hidden = items.length > 0;
}

// -- plots and state

function plot(svg, series, unit) {
  const width = svg.clientWidth || 500, height = 130, pad = 4;
  const most = Math.max(...series.flatMap((s) => s.points.map((p) => p[1])), 1e-9);
  const from = Math.min(...series.flatMap((s) => s.points.map((p) => p[0])), Infinity);
  const to = Math.max(...series.flatMap((s) => s.points.map((p) => p[0])), from + 1);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const made = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text) node.textContent = text;
    return node;
  };
  const lines = series.map((s) => made("polyline", {
    fill: "none", stroke: s.colour, "stroke-width": 1.6,
    points: s.points.map(([x, y]) => `${pad + ((x - from) / (to - from || 1)) * (width - 2 * pad)},${height - pad - (y / most) * (height - 24)}`).join(" "),
  }));
  const label = most < 1e-6 ? "" : `${most < 10 ? most.toPrecision(2) : Math.round(most).toLocaleString()} ${unit}`;
  svg.replaceChildren(made("text", { x: 6, y: 14, "font-size": 12, fill: "#55606b" }, label), ...lines);
}

async function stats() {
  try {
    const found = await call("GET", "/v1/stats");
    const of = (name) => found.seconds.filter((s) => s[name] !== undefined).map((s) => [s.at, s[name]]);
    plot($("rates"), [{ points: of("published_events_total"), colour: "#1d4e79" }, { points: of("notifications_total"), colour: "#b4560f" }], "a second");
    plot($("delays"), [{ points: of("p50"), colour: "#1d4e79" }, { points: of("p99"), colour: "#b4560f" }], "seconds");
    const peers = found.peers.length ? `, ${found.peers.length} peers` : "";
    $("state").textContent = `${found.ready ? "ready" : "matching is starting"}, engine ${found.engine}, ${found.pending} events waiting${peers}`;
  } catch (error) { $("state").textContent = `the broker does not answer: ${error.message}`; }
}

async function streams() {
  const found = await call("GET", "/v1/streams");
  const chosen = $("stream").value;
  $("stream").replaceChildren(...found.streams.map((s) => element("option", s.name, { value: s.name })));
  if (chosen) $("stream").value = chosen;
}

await Promise.allSettled([streams(), list(), stats(), errors()]);
listen();
setInterval(stats, 2000);
setInterval(() => { list().catch(() => {}); }, 15000);
setInterval(() => { errors().catch(() => {}); }, 5000);
$("key").addEventListener("change", () => { Promise.allSettled([streams(), list(), stats(), errors()]); listen(); });
document.body.dataset.ready = "true";
