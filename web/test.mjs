// The same answers from WebAssembly as from the command, byte for byte, and the command's own messages.
//
//   node web/test.mjs SITE EBBTIDE
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { at, lines, offered, withUnit } from "./page/course.js";
import { decodeState, encodeState } from "./page/state.js";

const [site, command] = process.argv.slice(2);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const module = new WebAssembly.Module(readFileSync(join(site, "ebbtide.wasm")));

class Testbed {
  #exports = new WebAssembly.Instance(module, {}).exports;

  call(request, bytes = new Uint8Array()) {
    const line = encoder.encode(`${JSON.stringify(request)}\n`);
    const place = this.#exports.input(line.length + bytes.length);
    const input = new Uint8Array(this.#exports.memory.buffer, place, line.length + bytes.length);
    input.set(line);
    input.set(bytes, line.length);
    const length = this.#exports.call();
    return new Uint8Array(this.#exports.memory.buffer, this.#exports.output(), length).slice();
  }

  ask(request) {
    return JSON.parse(decoder.decode(this.call(request)));
  }
}

/** The document of a campaign whose replications one instance computes and another one adds. */
function document(plan) {
  const [judge, worker] = [new Testbed(), new Testbed()];
  const opened = judge.ask({ op: "open", ...plan });
  assert.equal(opened.error, undefined);
  worker.ask({ op: "open", ...plan });
  opened.cells.forEach((cell, index) => {
    for (let replication = 0; replication < cell.reps; replication += 1) {
      judge.call({ op: "add", cell: index }, worker.call({ op: "compute", cell: index, replication }));
    }
  });
  return decoder.decode(judge.call({ op: "document" }));
}

// Times of the wall clock are not part of an answer.
const timeless = (text) => text.split("\n").filter((line) => !/"wall_s"/.test(line)).join("\n").trim();

const plans = [
  { scenario: "nb-iot", set: ["clients=60", "exchanges=5"], cc: "default,ebb", reps: "3", seed: "7" },
  { scenario: "alarms", set: ["meters=100", "require.delivered=0.99"], cc: "cocoa,fasor-token", reps: "2", seed: "1" },
  { scenario: "two-bottlenecks", set: [], cc: "ebb", reps: "1", seed: "1" },
  { scenario: "lora-like", set: ["period=60 s,90 s"], cc: "default", reps: "1", seed: "3" },
];
for (const plan of plans) {
  const set = plan.set.flatMap((one) => ["--set", one]);
  const rest = ["--cc", plan.cc, "--reps", plan.reps, "--seed", plan.seed, "--json"];
  const native = execFileSync(command, ["run", plan.scenario, ...set, ...rest], { encoding: "utf8", maxBuffer: 1 << 28 });
  assert.equal(timeless(document(plan)), timeless(native), `${plan.scenario}: the same document`);
}

// The courses that the page plays have the colours of the report, and what is in them.
{
  const [judge, plan] = [new Testbed(), { ...plans[0], reps: "2" }];
  judge.ask({ op: "open", ...plan });
  for (const cell of [0, 1]) for (const replication of [0, 1]) judge.call({ op: "add", cell }, judge.call({ op: "compute", cell, replication }));
  const { settings } = judge.ask({ op: "show" });
  const { rows } = settings[0];
  assert.ok(rows.every((row) => /^#[0-9a-f]{6}$/.test(row.look.light) && row.look.light !== row.look.dark));
  assert.deepEqual(offered(rows).slice(0, 3), ["queue_down", "queue_up", "in_flight"]);
  const { found, end, most } = lines(rows, "in_flight");
  assert.deepEqual([most, end > 3], [60, true], "60 clients have an exchange each in flight");
  assert.equal(at(found[0], 0).median, 0);
  assert.equal(at(found[0], found[0].step).median, 60);
}
for (const [value, unit, text] of [[14_100, "B", "14.1 kB"], [900, "B", "900 B"], [0.25, "1/s", "0.3 per second"]]) assert.equal(withUnit(value, unit), text);

// Wrong forms get the command's messages.
const good = readFileSync(new URL("../scenarios/nb-iot.toml", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "ebbtide-web-"));
const inNetwork = (line) => ({ toml: good.replace("[network.up]", `[network.up]\n${line}`) });
const wrong = [
  ...["rate = \"60 kbps\"", "rate = 60", "buffer = -1", "delay = \"x\"", "rte = \"60 kbit/s\""].map(inNetwork),
  ...["", "[network", "name = 3", "clients = 3"].map((toml) => ({ toml })),
  ...["kind = \"steady\"", "exchanges = 0", "period = \"0 s\"", "jitter = \"1 s\""].map((line) => ({ toml: good.replace("[workload]", `[workload]\n${line}`) })),
  { toml: `${good}\n[[class]]\nname = \"a b\"\ncount = 1\n` },
  { toml: `${good}\n[[cell_outage]]\nname = \"o\"\nat = \"-1 s\"\nduration = \"1 s\"\n` },
  ...["clients=0", "clients=x", "clients=2000000", "clientss=4", "errors=some", "rate=1 parsec/s", "buffer=", "clients", "clients=4,4", "network.up=3", "=3", "buffer=3", "workload=steady", "coap.nstart=0", "coap.ack_random_factor=0.5"].map((set) => ({ set: [set] })),
  { set: ["clients=4", "clients=5"] },
  { set: ["clients=4", "clients.count=5"] },
  ...["defualt", "default:rto=1", "default,default+", "cocoa:ageing=maybe", "", "ebb,ebb", "default+"].map((cc) => ({ cc })),
  ...["delivered=2", "in_time=0.9", "transmissions=0.1", "deadline=3 s", "power_mw=1"].map((one) => ({ set: [`require.${one}`] })),
  ...["0", "x", "-1", "1.5", "4294967296", ""].map((reps) => ({ reps })),
  ...["x", "-1", "1e3", "18446744073709551616", ""].map((seed) => ({ seed })),
];
assert.ok(wrong.length >= 40);
for (const { toml, set = [], cc = "default", reps = "1", seed = "1" } of wrong) {
  const place = toml === undefined ? "nb-iot" : join(folder, "x.toml");
  if (toml !== undefined) writeFileSync(place, toml);
  const native = spawnSync(command, ["run", place, ...set.flatMap((one) => ["--set", one]), "--cc", cc, `--reps=${reps}`, `--seed=${seed}`], { encoding: "utf8" });
  assert.equal(native.status, 2, `${JSON.stringify({ set, cc, reps, seed, toml: toml?.slice(-80) })} is refused`);
  const answer = new Testbed().ask({ op: "open", scenario: place, toml: toml ?? null, set, cc, reps, seed });
  // The command's parser of options says where to find help as well.
  const own = native.stderr.trim().replace(/^(ebbtide|error): /, "").replace(/\n\nFor more information.*$/s, "");
  assert.equal(answer.error, own, "the command's own message");
}

// A link holds the whole state, and a damaged one nothing.
const first = { scenario: "nb-iot", toml: null, set: {}, cc: "default", reps: "10", seed: "1" };
const state = { ...first, toml: "ü = \"–\"", set: { clients: "40" }, reps: "" };
assert.deepEqual({ ...first, ...decodeState(`#${encodeState(state, first)}`) }, state);
for (const damaged of ["", "#", "#%%%", "#bnVsbA", "#e30"]) assert.deepEqual(decodeState(damaged), {});
console.log(`${plans.length} documents and ${wrong.length} messages are those of ${command}`);
