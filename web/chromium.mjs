// Headless Chromium, over the DevTools protocol on a pipe.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Opens a browser with one empty page; `shots` is the folder for screenshots, if they are wanted. */
export async function open(shots) {
  const profile = mkdtempSync(join(tmpdir(), "ebbtide-chromium-"));
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"];
  const browser = spawn("chromium", flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const waiting = new Map();
  let number = 0;
  let rest = "";
  const complaints = [];
  browser.stdio[4].on("data", (data) => {
    const parts = (rest + data).split("\0");
    rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      if (message.method === "Runtime.exceptionThrown") complaints.push(message.params.exceptionDetails.text);
      if (message.method === "Log.entryAdded" && message.params.entry.source === "security") complaints.push(message.params.entry.text);
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  const send = (method, params = {}, sessionId = undefined) => {
    number += 1;
    const id = number;
    browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => {
      waiting.set(id, (message) => (message.error ? reject(new Error(`${method}: ${message.error.message}`)) : resolve(message.result)));
    });
  };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => send(method, params, sessionId);
  const value = async (expression) => (await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true })).result.value;
  /** Waits until an expression holds; the machine may be slow. */
  const until = async (expression) => {
    for (let turn = 0; turn < 1200; turn += 1) {
      if (await value(expression)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`never: ${expression}; the page says: ${await value("document.body?.innerText")}`);
  };
  const size = (width, height) => page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  const shot = async (name, beyond = true) => {
    if (!shots) return;
    const { data } = await page("Page.captureScreenshot", { captureBeyondViewport: beyond });
    writeFileSync(join(shots, `${name}.png`), Buffer.from(data, "base64"));
  };
  const key = async (name, code) => {
    const text = name === "Enter" ? "\r" : undefined;
    await page("Input.dispatchKeyEvent", { type: "keyDown", key: name, code: name, windowsVirtualKeyCode: code, text });
    await page("Input.dispatchKeyEvent", { type: "keyUp", key: name, code: name, windowsVirtualKeyCode: code });
  };
  /** The roles of controls that have no name for a screen reader. */
  const unnamed = async () => {
    const { nodes } = await page("Accessibility.getFullAXTree");
    const roles = ["button", "textbox", "slider", "combobox", "spinbutton"];
    return nodes.filter((node) => roles.includes(node.role?.value) && !node.name?.value).map((node) => node.role.value);
  };
  const close = async () => {
    browser.kill();
    await new Promise((resolve) => browser.on("exit", resolve));
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const domain of ["Runtime", "Page", "Log"]) await page(`${domain}.enable`);
  return { page, value, until, size, shot, key, unnamed, complaints, close };
}
