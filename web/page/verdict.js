// The verdict as text and as a table.

const GOOD = ["best", "level", "meets"];
const BAD = ["collapses", "misses"];

function element(name, text, look) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (look) made.className = look;
  return made;
}

const percent = (share) => (share === null ? "–" : share >= 1 ? "100 %" : `${(100 * share).toFixed(share > 0.99 ? 2 : 1)} %`);
const seconds = (value) => (value === null ? "never" : value >= 100 ? value.toFixed(0) : value.toPrecision(3));

function table(setting) {
  const rows = element("tbody");
  const checks = setting.rows[0]?.checks ?? [];
  for (const one of setting.rows) {
    const row = element("tr", undefined, one.judgement === "best" ? "best" : "");
    const name = element("th", one.cc);
    name.scope = "row";
    const look = GOOD.includes(one.judgement) ? "good" : BAD.includes(one.judgement) ? "bad" : "";
    row.append(name, element("td", one.judgement, look));
    for (const check of one.checks) row.append(element("td", check.found, check.met ? "good" : "bad"));
    row.append(element("td", percent(one.delivered)), element("td", seconds(one.delivered_by_99_s)));
    row.append(element("td", percent(one.unnecessary)), element("td", one.sent === null ? "–" : one.sent.toFixed(2)));
    rows.append(row);
  }
  const head = element("tr");
  const headings = ["control", "judgement", ...checks.map((check) => check.text), "delivered", "99 % by, s", "unnecessary", "sent per delivered"];
  for (const heading of headings) {
    const cell = element("th", heading);
    cell.scope = "col";
    head.append(cell);
  }
  const made = element("table");
  const top = element("thead");
  top.append(head);
  made.append(top, rows);
  const scroll = element("div", undefined, "scroll");
  scroll.append(made);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Controls compared");
  return scroll;
}

/** Shows each setting's sentence and table. */
export function show(place, settings) {
  const parts = settings.flatMap((setting) => {
    const label = setting.settings.map(([key, value]) => `${key} ${value}`).join(", ");
    const heading = settings.length > 1 ? [element("h3", label)] : [];
    return [...heading, element("p", setting.sentence, "sentence"), table(setting)];
  });
  place.replaceChildren(...parts);
}
