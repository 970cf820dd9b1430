// The explorer of a gateway: everything comes from the gateway itself, with the token that the address of this page has.

const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const at = (id) => document.getElementById(id);
/** The most states that are plotted, and the most exchanges that are shown. */
const STATES = 240;
const SHOWN = 40;

async function ask(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${token}` };
  return fetch(path, { ...options, headers, cache: "no-store" });
}

async function read(path) {
  const answer = await ask(path);
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status} ${answer.statusText}`);
  return answer.json();
}

function say(error) {
  at("error").textContent = error ? String(error.message ?? error) : "";
}

function element(name, text, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  if (text !== undefined) made.textContent = text;
  return made;
}

function button(text, act, label) {
  const made = element("button", text, { type: "button" });
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

/* Devices and their resources. */

async function devices() {
  const { devices } = await read("api/devices");
  at("devices").replaceChildren(...devices.map(({ uri, name, from }) => {
    const chosen = button(name, () => resources(uri));
    chosen.dataset.uri = uri;
    chosen.append(element("small", `${uri}, ${from}`));
    const item = element("li");
    item.append(chosen);
    return item;
  }));
  if (!devices.length) at("devices").append(element("li", "None has registered."));
}

async function resources(uri) {
  say("");
  at("device").value = uri;
  at("of").textContent = `${uri} is asked…`;
  for (const known of at("devices").querySelectorAll("button")) {
    known.setAttribute("aria-pressed", String(known.dataset.uri === uri));
  }
  try {
    const { links, from } = await read(`api/links?of=${encodeURIComponent(uri)}`);
    at("of").textContent = `${uri}: ${links.length} ${links.length === 1 ? "resource" : "resources"}, ${from}`;
    at("resources").replaceChildren(...links.map(row));
  } catch (error) {
    at("of").textContent = uri;
    at("resources").replaceChildren();
    say(error);
  }
}

function row({ target, attributes }) {
  const line = element("tr");
  const path = target.replace(/^[a-z+]+:\/\/[^/]*/, "") || "/";
  line.append(element("th", path, { scope: "row" }));
  line.append(element("td", attributes.map(([name, value]) => (value ? `${name}=${value}` : name)).join(" ")));
  const actions = element("td");
  const use = (act) => () => {
    at("uri").value = target;
    act();
  };
  actions.append(button("GET", use(() => send("GET")), `GET ${path}`));
  if (attributes.some(([name]) => name === "obs")) {
    actions.append(button("Observe", use(observe), `Observe ${path}`));
  }
  line.append(actions);
  return line;
}

/* Requests. */

function path() {
  return `hc/${at("uri").value.trim()}`;
}

async function send(method) {
  say("");
  at("method").value = method;
  const options = { method, headers: {} };
  if (["PUT", "POST", "PATCH"].includes(method)) {
    options.body = at("body").value;
    if (options.body) options.headers["Content-Type"] = at("type").value;
  }
  at("status").textContent = "Sent…";
  at("answer").textContent = "";
  const began = performance.now();
  try {
    const answer = await ask(path(), options);
    const text = shown(new Uint8Array(await answer.arrayBuffer()));
    const fields = ["content-type", "etag", "cache-control", "location", "retry-after"];
    const told = fields.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
    const took = Math.round(performance.now() - began);
    at("status").textContent = [`${answer.status} ${answer.statusText} after ${took} ms`, ...told].join(", ");
    at("answer").textContent = text;
  } catch (error) {
    at("status").textContent = "";
    say(error);
  }
}

/** Text as it is, JSON indented, other bytes as hexadecimal digits. */
function shown(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  } catch {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  }
}

/* Observations. */

let observing;
let states = [];

async function observe() {
  if (!at("uri").reportValidity()) return;
  stop();
  say("");
  const own = new AbortController();
  observing = own;
  states = [];
  at("stop").disabled = false;
  at("plotted").hidden = false;
  at("plot-heading").textContent = `Observation of ${at("uri").value}`;
  at("latest").textContent = "Waiting for the first state…";
  at("plot").replaceChildren();
  try {
    const answer = await ask(path(), { headers: { Accept: "text/event-stream" }, signal: own.signal });
    if (!answer.ok) throw new Error((await answer.text()).trim() || String(answer.status));
    const text = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await text.read(); !part.done; part = await text.read()) {
      const events = (rest + part.value).split("\n\n");
      rest = events.pop();
      events.filter((event) => event.startsWith("event:")).forEach(state);
    }
    if (observing === own) at("latest").textContent += " The observation has ended.";
  } catch (error) {
    if (error.name !== "AbortError") say(error);
    if (observing === own) at("plotted").hidden = states.length === 0;
  } finally {
    if (observing === own) stop();
  }
}

function stop() {
  observing?.abort();
  observing = undefined;
  at("stop").disabled = true;
}

function state(event) {
  const lines = event.split("\n");
  const code = lines[0].slice("event: ".length);
  const payload = lines.slice(1).map((line) => line.slice("data: ".length)).join("\n");
  const time = new Date();
  at("latest").textContent = `${time.toLocaleTimeString()} ${code}: ${payload.slice(0, 200)}`;
  const value = number(payload);
  if (value === undefined || !code.startsWith("2.")) return;
  states.push({ time: time.getTime(), value });
  states = states.slice(-STATES);
  plot();
}

/** The number in a payload: its text, or the first number in its JSON. */
function number(payload) {
  const found = (value) => {
    if (typeof value === "number") return value;
    if (value === null || typeof value !== "object") return undefined;
    // SenML has its value in v; other members say when it was measured.
    const parts = "v" in value ? [value.v] : Object.values(value);
    return parts.map(found).find((part) => part !== undefined);
  };
  try {
    return found(JSON.parse(payload));
  } catch {
    const text = payload.match(/-?\d+(\.\d+)?([eE][+-]?\d+)?/);
    return text ? Number(text[0]) : undefined;
  }
}

function drawn(name, more, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function plot() {
  const [low, high] = [Math.min(...states.map(({ value }) => value)), Math.max(...states.map(({ value }) => value))];
  const first = states[0].time;
  const span = Math.max(states.at(-1).time - first, 1000);
  const x = ({ time }) => 10 + (780 * (time - first)) / span;
  const y = ({ value }) => (high > low ? 170 - (140 * (value - low)) / (high - low) : 100);
  const points = states.map((point) => `${x(point).toFixed(1)} ${y(point).toFixed(1)}`);
  at("plot").replaceChildren(
    drawn("path", { d: `M${points.join("L")}` }),
    ...states.map((point) => drawn("circle", { cx: x(point), cy: y(point), r: 3 })),
    drawn("text", { x: 10, y: 20 }, String(high)),
    drawn("text", { x: 10, y: 194 }, `${low}, ${Math.round(span / 1000)} s`),
  );
}

/* Paths and exchanges, once a second while the page is seen. */

const milliseconds = (value) => (value === null ? "–" : value < 10000 ? `${value} ms` : `${(value / 1000).toFixed(1)} s`);

async function paths() {
  const { paths } = await read("api/paths");
  const row = ({ name, in_flight, budget, waiting, round_trip, timeout }) => {
    const line = element("tr");
    line.append(element("th", name, { scope: "row" }));
    for (const count of [in_flight, budget, waiting]) line.append(element("td", count ?? "–"));
    line.append(element("td", milliseconds(round_trip)), element("td", milliseconds(timeout)));
    return line;
  };
  at("paths").replaceChildren(...paths.map(row));
}

async function exchanges() {
  const { exchanges } = await read("api/exchanges");
  const newest = exchanges.slice(-SHOWN).reverse();
  const first = Math.min(...newest.map(({ began }) => began));
  const last = Math.max(...newest.map(({ began, waited, took }) => began + waited + took), first + 1);
  const row = ({ request, answer, began, waited, took }) => {
    const line = element("tr");
    const bar = (kind, from, length) => {
      const made = element("span", undefined, { className: kind });
      made.style.left = `${(100 * (from - first)) / (last - first)}%`;
      made.style.width = `${(100 * length) / (last - first)}%`;
      return made;
    };
    const track = element("div", undefined, { className: "track" });
    track.append(bar("wait", began, waited), bar("way", began + waited, took));
    const place = element("td", undefined, { className: "wide" });
    place.append(track);
    line.append(
      element("th", request, { scope: "row" }),
      element("td", answer, { className: /^2/.test(answer) ? "" : "bad" }),
      element("td", milliseconds(waited)),
      element("td", milliseconds(took)),
      place,
    );
    return line;
  };
  at("exchanges").replaceChildren(...newest.map(row));
}

async function turn() {
  if (!document.hidden) {
    try {
      await Promise.all([paths(), exchanges()]);
    } catch (error) {
      say(error);
    }
  }
  setTimeout(turn, 1000);
}

at("other").addEventListener("submit", (event) => {
  event.preventDefault();
  resources(at("device").value.trim());
});
at("request").addEventListener("submit", (event) => {
  event.preventDefault();
  send(at("method").value);
});
at("observe").addEventListener("click", observe);
at("stop").addEventListener("click", stop);
devices().catch(say);
turn();
