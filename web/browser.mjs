// The page of `ebbtide play` in headless Chromium: its verdict, its keyboard, its
// width.
//
//   node web/browser.mjs EBBTIDE SITE [FOLDER for screenshots]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { open } from "./chromium.mjs";

const [command, site, shots] = process.argv.slice(2);
const server = spawn(command, ["play", "--port", "0", "--site", site], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve, reject) => {
  server.stdout.once("data", (data) => resolve(String(data).split(" ")[0]));
  server.once("exit", (code) => reject(new Error(`ebbtide play ended with ${code}`)));
});
const { page, value, until, size, shot, key, unnamed, complaints, close } = await open(shots);

try {
  await size(1280, 1000);
  await page("Page.navigate", { url });
  await until("document.querySelector('.sentence')");
  const first = await value("performance.now()");
  await until("document.body.dataset.done === 'yes'");
  const sentence = await value("document.querySelector('.sentence').textContent");
  assert.match(sentence, /^(Use|Every|No control|The )/);
  assert.equal(await value("document.querySelectorAll('#settings tbody tr').length"), 4);
  await until("document.getElementById('report').contentDocument.querySelectorAll('svg').length > 4");

  // What the whole page, its report and its figures took over the wire.
  const wire = await value("[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].reduce((sum, one) => sum + one.transferSize, 0)");
  assert.ok(wire > 500_000 && wire <= 1_000_000, `${wire} bytes over the wire`);

  // The courses are played by themselves, and by keyboard.
  const levels = "[...document.querySelectorAll('.level')].map((one) => one.textContent).join()";
  assert.equal(await value("document.querySelectorAll('.level').length"), 4);
  await until("Number(document.getElementById('time').value) > 300");
  await shot("wide");
  await value("document.getElementById('play').focus()");
  if (await value("document.getElementById('play').textContent === 'Pause'")) await key("Enter", 13);
  await until("document.getElementById('play').textContent === 'Play'");
  const played = await value(levels);
  await value("document.getElementById('time').focus()");
  await key("Home", 36);
  await until(`${levels} !== ${JSON.stringify(played)}`);
  assert.match(await value("document.getElementById('time').getAttribute('aria-valuetext')"), /^0\.0 s: default 0 B, /);
  // The report is drawn, with its figures.
  await value("document.getElementById('report').scrollIntoView()");
  await until("document.getElementById('report').getBoundingClientRect().top < 400");
  await shot("report", false);
  await value("scrollTo(0, 0)");

  // By keyboard: a slider changes a key, its field follows, and the answer is another one.
  const before = await value("document.getElementById('command').textContent");
  await value("document.querySelector('.key input[type=range]').focus()");
  for (let turn = 0; turn < 3; turn += 1) await key("ArrowLeft", 37);
  await until(`document.getElementById('command').textContent !== ${JSON.stringify(before)}`);
  await until("document.body.dataset.done === 'yes'");
  assert.match(await value("location.hash"), /^#\S{8}/);

  // A wrong file: the message is an alert, the text stays as it was typed, and the last verdict remains.
  await value("{ const file = document.getElementById('toml'); file.value = file.value.replace('[network.up]', '[network.up]\\nrte = 1'); file.dispatchEvent(new Event('input')); }");
  await until("/unknown field `rte`|rte/.test(document.getElementById('error').textContent)");
  assert.match(await value("document.getElementById('toml').value"), /rte = 1/);
  assert.equal(await value("document.getElementById('toml').getAttribute('aria-invalid')"), "true");
  await value("{ const file = document.getElementById('toml'); file.value = file.value.replace('rte = 1', ''); file.dispatchEvent(new Event('input')); }");
  await until("document.getElementById('error').textContent === '' && document.body.dataset.done === 'yes'");

  // Every control has a name for a screen reader.
  assert.deepEqual(await unnamed(), []);

  // Narrow: nothing is wider than the screen.
  await size(400, 900);
  await until("document.documentElement.scrollWidth <= 400");
  await shot("narrow");
  assert.deepEqual(complaints, []);
  console.log(`first verdict after ${Math.round(first)} ms, ${wire} bytes over the wire: ${sentence}`);
} finally {
  server.kill();
  await close();
}
