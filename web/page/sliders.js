// The short names of a scenario as sliders and fields.

const STEPS = 20; // of a factor of ten

/** A number and its unit; nothing for other values. */
function parse(text) {
  const found = /^([0-9.]+)\s*([A-Za-z/%]*)$/.exec(text.trim());
  return found && Number(found[1]) > 0 ? { number: Number(found[1]), unit: found[2] } : null;
}

/** Two significant digits, and whole where the value was whole. */
function scaled(own, step) {
  const exact = own.number * 10 ** (step / STEPS);
  const rounded = Number(exact.toPrecision(exact >= 100 ? 3 : 2));
  const isWhole = Number.isInteger(own.number) && !own.unit;
  const value = isWhole ? Math.max(1, Math.round(rounded)) : rounded;
  return own.unit ? `${value} ${own.unit}` : String(value);
}

export class Sliders {
  constructor(place, changed) {
    this.place = place;
    this.changed = changed;
    this.fields = new Map();
  }

  /** Builds a line for each key, with the values that differ from the scenario's. */
  build(keys, set) {
    this.place.querySelectorAll(".key").forEach((one) => one.remove());
    this.fields.clear();
    for (const key of keys) {
      const line = document.createElement("div");
      line.className = "key";
      const id = `key-${key.name}`;
      const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: key.name.replaceAll(".", ".\u200b") });
      line.append(label);
      const own = key.choices.length ? null : parse(key.value);
      const field = key.choices.length ? document.createElement("select") : document.createElement("input");
      field.id = id;
      if (key.choices.length) field.append(...key.choices.map((name) => new Option(name, name)));
      field.value = set[key.name] ?? key.value;
      field.autocomplete = "off";
      if (!key.value) field.placeholder = "none";
      let slider;
      if (own) {
        slider = Object.assign(document.createElement("input"), { type: "range", min: -2 * STEPS, max: 2 * STEPS, value: 0 });
        slider.setAttribute("aria-label", `${key.name}, slider`);
        slider.setAttribute("aria-valuetext", key.value);
        slider.addEventListener("input", () => {
          field.value = slider.value === "0" ? key.value : scaled(own, Number(slider.value));
          slider.setAttribute("aria-valuetext", field.value);
          this.#changed(key, field.value);
        });
        this.#follow(slider, own, field.value);
        line.append(slider);
      } else {
        field.className = "wide";
      }
      field.addEventListener("input", () => {
        if (slider) this.#follow(slider, own, field.value);
        this.#changed(key, field.value);
      });
      line.append(field);
      this.place.append(line);
      this.fields.set(key.name, field);
    }
  }

  /** Fields that are not being typed into show the value as the testbed has read it. */
  follow(keys) {
    for (const key of keys) {
      const field = this.fields.get(key.name);
      if (field && field !== document.activeElement && field.value.trim() === "") field.value = key.value;
    }
  }

  #follow(slider, own, text) {
    const value = parse(text);
    if (value && value.unit === own.unit) slider.value = Math.round(STEPS * Math.log10(value.number / own.number));
    slider.setAttribute("aria-valuetext", text);
  }

  #changed(key, value) {
    this.changed(key.name, value.trim() === "" || value === key.value ? null : value);
  }
}
