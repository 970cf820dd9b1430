// The courses of the controls over time: bars of the moment at which the player is, and the curves up to it. More
// replications make the curves sharper while the player goes on.

const PLAYED_IN = 12_000; // milliseconds for the whole course
const [WIDTH, HEIGHT] = [800, 220];
const SVG = "http://www.w3.org/2000/svg";
const NAMES = {
  queue_down: "queue to the devices",
  queue_up: "queue to the server",
  in_flight: "exchanges in flight",
  sent: "sent",
  delivered: "delivered",
  timeouts: "timeouts",
  unnecessary: "unnecessary copies",
};
const ORDER = Object.keys(NAMES);

/** A quantity of a course; nothing if there is none. */
const of = (course, name) => course.quantities.find((quantity) => quantity.name === name);
const top = (quantity) => quantity.high.reduce((most, value) => Math.max(most, value), 0);

/** A value with its unit. */
export function withUnit(value, unit) {
  const [scaled, prefix] = unit === "B" && value >= 10_000 ? [value / 1000, "k"] : [value, ""];
  const digits = scaled >= 100 || Number.isInteger(scaled) ? 0 : 1;
  return `${scaled.toFixed(digits)} ${prefix}${unit === "1/s" ? "per second" : unit}`;
}

/** What the chart of a quantity shows: its lines, and the ends of its axes. */
export function lines(rows, name) {
  const shown = rows.filter((row) => row.course && of(row.course, name));
  const found = shown.map((row) => ({ row, step: row.course.step_s, quantity: of(row.course, name) }));
  const end = Math.max(0, ...found.map((line) => line.step * line.quantity.median.length));
  return { found, end, most: Math.max(0, ...found.map((line) => top(line.quantity))) };
}

/** The quantities in which anything happens, the queues first. */
export const offered = (rows) => ORDER.filter((name) => lines(rows, name).most > 0);

/** The values of a line at an instant. A value is the one at the end of its step. */
export function at(line, seconds) {
  const place = Math.min(Math.floor(seconds / line.step), line.quantity.median.length);
  const value = (list) => (place < 1 ? 0 : list[place - 1]);
  return { median: value(line.quantity.median), low: value(line.quantity.low), high: value(line.quantity.high) };
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export class Player {
  /** `$` finds the elements of the page by their id. */
  constructor($) {
    this.$ = $;
    this.settings = [];
    this.share = 0; // of the course that has been played
    this.isNew = true;
    $("quantity").addEventListener("change", () => this.#draw());
    $("setting").addEventListener("change", () => { this.#offer(); this.#draw(); });
    $("play").addEventListener("click", () => this.#play(!this.isPlaying));
    $("time").addEventListener("input", () => {
      this.#play(false);
      this.share = Number($("time").value) / 1000;
      this.#moment();
    });
  }

  /** Another campaign begins: the next courses are played from their start. */
  begin() {
    this.isNew = true;
  }

  /** Shows the courses as they are now; what is being played goes on. */
  show(settings) {
    const { $ } = this;
    this.settings = settings;
    const labels = settings.map((one) => one.settings.map(([key, value]) => `${key} ${value}`).join(", "));
    if ($("setting").options.length !== labels.length || this.isNew) {
      $("setting").replaceChildren(...labels.map((label, index) => new Option(label, index)));
    }
    $("setting-label").hidden = labels.length < 2;
    this.#offer();
    if ($("course").hidden) return;
    this.#draw();
    if (!this.isNew) return;
    this.isNew = false;
    // Who wants no motion gets the whole course, and a button.
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.share = isStill ? 1 : 0;
    this.#play(!isStill);
    this.#moment();
  }

  get #rows() {
    return this.settings[Number(this.$("setting").value) || 0]?.rows ?? [];
  }

  #offer() {
    const names = offered(this.#rows);
    const select = this.$("quantity");
    const before = select.value;
    select.replaceChildren(...names.map((name) => new Option(NAMES[name], name)));
    if (names.includes(before)) select.value = before;
    this.$("course").hidden = names.length === 0;
  }

  #draw() {
    const { $ } = this;
    this.chart = lines(this.#rows, $("quantity").value);
    const { found, end, most } = this.chart;
    const point = (line, index, value) => `${((index + 1) * line.step / end * WIDTH).toFixed(1)} ${(HEIGHT - (value / most) * (HEIGHT - 4)).toFixed(1)}`;
    const path = (line, list) => list.map((value, index) => point(line, index, value));
    const clip = drawn("clipPath", { id: "played" });
    this.window = drawn("rect", { x: 0, y: 0, height: HEIGHT });
    clip.append(this.window);
    const curves = drawn("g", { "clip-path": "url(#played)" });
    this.bars = found.map((line) => {
      const { light, dark, dash } = line.row.look;
      const { low, median, high } = line.quantity;
      const style = `--light:${light};--dark:${dark}`;
      const band = [...path(line, high), ...path(line, low).reverse()].join("L");
      const look = { style, "stroke-dasharray": dash || "none" };
      curves.append(drawn("path", { class: "band", style, d: `M${band}Z` }));
      curves.append(drawn("path", { class: "line", ...look, d: `M0 ${HEIGHT}L${path(line, median).join("L")}` }));
      const bar = document.createElement("div");
      bar.className = "level";
      bar.style.cssText = style;
      bar.innerHTML = "<span></span><span class=\"track\"><span class=\"range\"></span><span class=\"fill\"></span></span><span></span>";
      bar.firstChild.textContent = line.row.cc;
      return { line, bar, range: bar.querySelector(".range"), fill: bar.querySelector(".fill"), value: bar.lastChild };
    });
    this.head = drawn("line", { class: "head", y1: 0, y2: HEIGHT });
    $("chart").replaceChildren(clip, drawn("path", { class: "axis", d: `M0 ${HEIGHT}H${WIDTH}` }), curves, this.head);
    $("levels").replaceChildren(...this.bars.map((one) => one.bar));
    const unit = found[0]?.quantity.unit ?? "";
    $("chart-about").textContent =
      `${NAMES[$("quantity").value] ?? ""} over ${end.toFixed(end < 10 ? 1 : 0)} s, up to ${withUnit(most, unit)}: the median over replications, and their 10th to 90th percentile.`;
    this.#moment();
  }

  /** Shows the instant at which the player is. */
  #moment() {
    const { $, chart } = this;
    if (!chart) return;
    const seconds = this.share * chart.end;
    const x = (this.share * WIDTH).toFixed(1);
    this.window.setAttribute("width", x);
    this.head.setAttribute("x1", x);
    this.head.setAttribute("x2", x);
    const said = this.bars.map(({ line, range, fill, value }) => {
      const now = at(line, seconds);
      const share = (one) => `${(100 * one / (chart.most || 1)).toFixed(1)}%`;
      fill.style.width = share(now.median);
      range.style.left = share(now.low);
      range.style.width = share(now.high - now.low);
      value.textContent = withUnit(now.median, line.quantity.unit);
      return `${line.row.cc} ${value.textContent}`;
    });
    const clock = `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
    $("time").value = Math.round(this.share * 1000);
    $("time").setAttribute("aria-valuetext", `${clock}: ${said.join(", ")}`);
    $("at").textContent = clock;
  }

  #play(isPlaying) {
    this.isPlaying = isPlaying;
    this.$("play").textContent = isPlaying ? "Pause" : "Play";
    if (!isPlaying) return;
    if (this.share >= 1) this.share = 0;
    const turn = this.turn = (this.turn ?? 0) + 1;
    let before = performance.now();
    const step = (now) => {
      if (!this.isPlaying || this.turn !== turn) return;
      this.share = Math.min(1, this.share + Math.max(0, now - before) / PLAYED_IN);
      before = now;
      this.#moment();
      if (this.share < 1) requestAnimationFrame(step);
      else this.#play(false);
    };
    requestAnimationFrame(step);
  }
}
