// The state of the page as the part of its address after "#".

/** Base64url of the JSON of all that differs from the first state. */
export function encodeState(state, first) {
  const differs = ([key, value]) => JSON.stringify(value) !== JSON.stringify(first[key]);
  const own = Object.fromEntries(Object.entries(state).filter(differs));
  if (!Object.keys(own).length) return "";
  const bytes = new TextEncoder().encode(JSON.stringify(own));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The known parts of a link; nothing if it is damaged. */
export function decodeState(hash) {
  try {
    const text = atob(hash.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const read = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (one) => one.charCodeAt(0))));
    const isText = (value) => typeof value === "string";
    const own = {};
    for (const key of ["scenario", "toml", "cc", "reps", "seed"]) if (isText(read[key])) own[key] = read[key];
    if (read.set && Object.values(read.set).every(isText)) own.set = { ...read.set };
    return own;
  } catch {
    return {};
  }
}
