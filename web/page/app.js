// The page: a form and a file describe a network, workers compute replications, and the verdict sharpens with each.
import { Bench } from "./bench.js";
import { Player } from "./course.js";
import { decodeState, encodeState } from "./state.js";
import { Sliders } from "./sliders.js";
import { show } from "./verdict.js";

const $ = (id) => document.getElementById(id);
const FIRST = { scenario: "nb-iot", toml: null, set: {}, cc: "default,cocoa,fasor-token,ebb", reps: "10", seed: "1" };
const read = () => ({ ...FIRST, set: {}, ...decodeState(location.hash) });
let state = read();
let bench;
let sliders;
let player;
let timer;
let asked = 0;

/** The command line's arguments for a state. */
function plan(withSettings = true) {
  return {
    op: "open",
    scenario: state.toml === null ? state.scenario : `my-${state.scenario}.toml`,
    toml: state.toml,
    set: withSettings ? Object.entries(state.set).map(([key, value]) => `${key}=${value}`) : [],
    cc: state.cc,
    reps: state.reps.trim(),
    seed: state.seed.trim(),
  };
}

function wrong(message) {
  $("error").textContent = message;
  const fields = { toml: /\.toml:/, cc: /^--cc/, reps: /'--reps/, seed: /'--seed/ };
  for (const [id, own] of Object.entries(fields)) {
    if (own.test(message)) $(id).setAttribute("aria-invalid", "true");
    else $(id).removeAttribute("aria-invalid");
  }
}

async function run() {
  const turn = ++asked;
  history.replaceState(null, "", `#${encodeState(state, FIRST)}`);
  const opened = await bench.open(plan());
  if (turn !== asked) return;
  if (opened.error) { wrong(opened.error); return; }
  wrong("");
  $("command").textContent = opened.command;
  sliders.follow(opened.keys);
  if (opened.unreachable.length) wrong(`${opened.unreachable[0][1]}; no control can meet this`);
  const started = performance.now();
  player.begin();
  await bench.run(opened, (found, done, all) => {
    if (turn !== asked) return;
    $("progress").max = all;
    $("progress").value = done;
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    $("state").textContent = `${found.replications} of ${opened.cells[0].reps} replications of ${opened.cells.length} cells, ${seconds} s`;
    show($("settings"), found.settings);
    player.show(found.settings);
    const isDone = done === all;
    if (isDone || !$("report").srcdoc) $("report").srcdoc = found.report;
    document.body.dataset.done = isDone ? "yes" : "no";
  }).catch((error) => turn === asked && wrong(error.message));
}

function soon(milliseconds = 200) {
  clearTimeout(timer);
  bench.stop();
  document.body.dataset.done = "no";
  timer = setTimeout(run, milliseconds);
}

/** Reads the scenario's own values; the file stays as it was typed. */
async function load() {
  const turn = ++asked;
  const opened = await bench.open(plan(false));
  if (turn !== asked) return;
  if (opened.error) { wrong(opened.error); return; }
  if (state.toml === null) $("toml").value = opened.toml;
  sliders.build(opened.keys, state.set);
  soon(0);
}

function fill() {
  for (const id of ["scenario", "cc", "reps", "seed"]) $(id).value = state[id];
  if (state.toml !== null) $("toml").value = state.toml;
}

function said(text) {
  $("said").textContent = text;
}

async function begin() {
  bench = await Bench.start(navigator.hardwareConcurrency || 2);
  const known = await bench.ask({ op: "list" });
  $("scenario").append(...known.scenarios.map((name) => new Option(name, name)));
  $("controls").append(...known.controls.map((name) => new Option(name, name)));
  player = new Player($);
  sliders = new Sliders($("keys"), (key, value) => {
    if (value === null) delete state.set[key];
    else state.set[key] = value;
    soon();
  });
  fill();
  $("scenario").addEventListener("change", () => {
    state = { ...state, scenario: $("scenario").value, toml: null, set: {} };
    load();
  });
  $("toml").addEventListener("input", () => {
    state.toml = $("toml").value;
    clearTimeout(timer);
    bench.stop();
    timer = setTimeout(load, 400);
  });
  for (const id of ["cc", "reps", "seed"]) {
    $(id).addEventListener("input", () => { state[id] = $(id).value; soon(400); });
  }
  $("form").addEventListener("submit", (event) => { event.preventDefault(); soon(0); });
  $("stop").addEventListener("click", () => { asked += 1; bench.stop(); said("Stopped."); });
  $("reset").addEventListener("click", () => { state = { ...FIRST, set: {} }; fill(); load(); said("Reset."); });
  $("link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      said("The link is in the clipboard.");
    } catch {
      said("The link is in the address bar.");
    }
  });
  $("download").addEventListener("click", () => {
    const file = new Blob([$("toml").value], { type: "application/toml" });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${state.scenario}.toml` });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  window.addEventListener("hashchange", () => { state = read(); fill(); load(); });
  await load();
}

begin().catch((error) => wrong(`The page cannot start: ${error.message}`));
