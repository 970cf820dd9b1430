// The explorer in headless Chromium, with a device of its own: what it lists, a request, an observation, the keyboard, its
// width.
//
//   node web/explorer.mjs EBBTIDE [FOLDER for screenshots]
//
// The same with devices behind a modelled link, whose addresses follow:
//
//   ebbtide emulate --link nb-iot --hosts 3 --server "node web/explorer.mjs EBBTIDE FOLDER 10.83.1.1 10.83.1.2 10.83.1.3" -- \
//     ebbtide serve --bind 10.83.1.1:5683 --bind 10.83.1.2:5683 --bind 10.83.1.3:5683
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { open } from "./chromium.mjs";

const [command, shots, ...hosts] = process.argv.slice(2);
const programs = [];
const links = "</time>;obs;title=\"time of day\",</test>,</echo>,</separate>;title=\"answers after two seconds\"";

/** Starts a program, and waits for the lines that begin with these words. Returns the rest of each. */
async function start(args, words) {
  const program = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  programs.push(program);
  let said = "";
  return new Promise((resolve, reject) => {
    program.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    program.stdout.on("data", (data) => {
      said += data;
      const found = words.map((word) => said.split("\n").find((line) => line.startsWith(word))?.slice(word.length));
      if (said.endsWith("\n") && found.every(Boolean)) resolve(found);
    });
  });
}

const devices = hosts.length ? hosts.map((host) => `coap://${host}`) : await start(["serve", "--bind", "127.0.0.1:0"], ["serving at "]);
const [device] = devices;
const [own, allowed] = hosts.length ? ["10.83.0.1:5683", "10.83.0.0/16"] : ["127.0.0.1:0", "127.0.0.0/8"];
const proxy = ["proxy", "--bind", own, "--backend", `/far=${device}/`, "--allow", allowed, "--directory", "--explore", "127.0.0.1:0"];
const [coap, url] = await start(proxy, ["proxy at ", "explorer at "]);
for (const [number, base] of devices.entries()) {
  const args = ["post", `${coap}/rd?ep=node${number + 1}&base=${base}`, "-t", "link-format", "-e", links];
  const registered = spawnSync(command, args);
  assert.equal(registered.status, 0, String(registered.stderr));
}
// Behind an emulator, the devices begin when the proxy listens.
while (spawnSync(command, ["get", `${device}/test`, "-B", "30"]).status !== 0);

const { page, value, until, size, shot, key, unnamed, complaints, close } = await open(shots);
try {
  await size(1280, 1000);
  await page("Page.navigate", { url });
  await until(`document.querySelectorAll('#devices button').length === ${devices.length + 1}`);
  assert.match(await value("document.getElementById('devices').innerText"), /node1/);

  // By keyboard: the first device's resources, one of them requested.
  await value("document.querySelector('#devices button').focus()");
  await key("Enter", 13);
  await until("document.querySelectorAll('#resources tr').length >= 1");
  assert.match(await value("document.getElementById('of').textContent"), /resources/);
  await value(`{ const uri = document.getElementById('uri'); uri.value = '${device}/echo'; document.getElementById('body').value = '{"on":true}'; document.getElementById('type').value = 'application/json'; document.getElementById('method').value = 'PUT'; uri.focus(); }`);
  await key("Enter", 13);
  await until("/^20\\d .* ms/.test(document.getElementById('status').textContent)");
  assert.match(await value("document.getElementById('answer').textContent"), /"on": true/);

  // An observation, plotted as its states come.
  await value(`document.getElementById('uri').value = '${device}/time'; document.getElementById('observe').click()`);
  await until("document.querySelectorAll('#plot circle').length >= 6");
  assert.match(await value("document.getElementById('latest').textContent"), /2\.05: \d+/);

  // What is not there, and what is not allowed, is said.
  await value("{ const device = document.getElementById('device'); device.value = 'coap://192.0.2.1'; device.form.requestSubmit(); }");
  await until("/not allowed/.test(document.getElementById('error').textContent)");
  await value("document.querySelector('#devices button').click()");
  await until("document.getElementById('error').textContent === ''");

  // Paths and exchanges: a slow resource of each device.
  for (const base of devices) await value(`document.getElementById('uri').value = '${base}/separate'; document.getElementById('method').value = 'GET'; document.getElementById('request').requestSubmit()`);
  await until("/two seconds/.test(document.getElementById('answer').textContent)");
  await until("document.querySelectorAll('#paths tr').length >= 2 && document.querySelectorAll('#exchanges tr').length >= 2");
  assert.match(await value("document.getElementById('paths').innerText"), hosts.length ? /10\.83\.1\.0\/24/ : /127\.0\.0\.0\/24/);
  assert.match(await value("document.getElementById('exchanges').innerText"), /PUT coap:.*\/echo/);
  await until("document.querySelectorAll('#resources tr').length >= 1");
  await shot("explorer");
  await value("document.getElementById('stop').click()");
  await until("document.getElementById('stop').disabled");

  assert.deepEqual(await unnamed(), []);
  await size(400, 900);
  await until("document.documentElement.scrollWidth <= 400");
  await shot("explorer-narrow");

  // Without the token nothing is shown.
  await page("Page.navigate", { url: url.split("#")[0] });
  await until("/open the address with its token/.test(document.getElementById('error')?.textContent)");
  assert.deepEqual(complaints, []);
  console.log("the explorer lists, requests, observes and fits");
} finally {
  programs.forEach((program) => program.removeAllListeners("exit").kill());
  await close();
}
