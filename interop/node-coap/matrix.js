// The adapter of node-coap for the interoperability matrix; ../README.md describes it.
//
//     matrix.js server PORT HOST [coap]
//     matrix.js ask URI
"use strict";
const coap = require("coap");
const readline = require("readline");

const UNSUPPORTED = 127;
const TAG = Buffer.from([0x2a]);
const digits = (length) => Buffer.from("0123456789".repeat(Math.ceil(length / 10)).slice(0, length));
// A loopback interface answers soon, and a relay that loses a tenth of all needs more patience.
coap.updateTiming({ ackTimeout: 0.5, maxRetransmit: 8 });
// A failed request is a result, and one that fails later must not end the process.
process.on("uncaughtException", (error) => console.error(String(error)));

function serve(port, host, scheme) {
  if (scheme !== "coap") process.exit(UNSUPPORTED);
  let counted = 0;
  const observed = (every, state) => (request, response) => {
    let number = Math.floor(Date.now() / every);
    if (request.headers.Observe !== 0) return response.end(state(number));
    response.write(state(number));
    const timer = setInterval(() => response.write(state(++number)), every);
    response.on("finish", () => clearInterval(timer));
  };
  const content = (body) => ({ GET: (_, response) => response.end(body) });
  const echo = (code) => (request, response) => {
    response.code = code;
    response.end(request.payload);
  };
  const resources = {
    "/test": content(digits(60)),
    "/large": content(digits(1 << 20)),
    "/medium": content(digits(10000)),
    "/a b": content("spaced"),
    "/separate": { GET: (_, response) => setTimeout(() => response.end("that took a while"), 500) },
    "/query": { GET: (request, response) => response.end(request.url.split("?")[1] || "") },
    "/echo": {
      PUT: echo("2.04"), POST: echo("2.04"), PATCH: echo("2.04"), iPATCH: echo("2.04"), FETCH: echo("2.05"),
      DELETE: (_, response) => { response.code = "2.02"; response.end(); },
    },
    "/tagged": {
      GET: (request, response) => {
        const option = (name) => request.options.find((option) => option.name === name)?.value;
        const accepted = option("Accept");
        if (accepted !== undefined && accepted !== "text/plain") response.code = "4.06";
        else {
          response.setOption("ETag", TAG);
          if (option("ETag") === TAG.toString()) response.code = "2.03";
          else return response.end("tagged");
        }
        response.end();
      },
      PUT: (request, response) => {
        const option = (name) => request.options.find((option) => option.name === name)?.value;
        const refused = option("If-None-Match") !== undefined || (option("If-Match") && !option("If-Match").equals(TAG));
        response.code = refused ? "4.12" : "2.04";
        response.end();
      },
    },
    "/fresh": {
      GET: (request, response) => {
        if (request.options.some((option) => String(option.name) === "252")) return response.end("fresh");
        response.code = "4.01";
        response.setOption("252", Buffer.from("echo-me!"));
        response.end();
      },
    },
    "/length": { PUT: (request, response) => { response.code = "2.04"; response.end(String(request.payload.length)); } },
    "/count": { POST: (_, response) => { response.code = "2.04"; response.end(String(++counted)); } },
    "/time": { GET: observed(250, (number) => String(number)) },
    "/times": { GET: observed(500, (number) => String(number % 10).repeat(3000)) },
    "/.well-known/core": content("</test>,</large>,</medium>,</echo>,</length>,</count>,</time>;obs,</times>;obs"),
  };
  const server = coap.createServer({ type: host.includes(":") ? "udp6" : "udp4" }, (request, response) => {
    const resource = resources[decodeURIComponent(request.url.split("?")[0])];
    const handler = resource && resource[request.method];
    if (handler) return handler(request, response);
    response.code = resource ? "4.05" : "4.04";
    response.end();
  });
  server.listen(port, host, () => console.log("ready"));
}

const number = { "If-Match": 1, "If-None-Match": 5, Accept: 17, "Proxy-Uri": 35, Observe: 6, "Content-Format": 12, ETag: 4, "Max-Age": 14, Block2: 23, Block1: 27, Size2: 28 };
const even = (digits) => (digits.length % 2 ? "0" : "") + digits;
const hexadecimal = (value) =>
  Buffer.isBuffer(value) ? value.toString("hex") : typeof value === "string" ? Buffer.from(value).toString("hex") : even(Number(value).toString(16));
function show(message) {
  const options = (message._packet?.options || [])
    .map((option) => [number[option.name] || Number(option.name) || 0, option.value])
    .filter(([name]) => name).map(([name, value]) => `${name}:${hexadecimal(value)}`);
  console.log(`${message.code} ${options.join(",") || "-"} ${message.payload.toString("hex") || "-"}`);
}

function ask(uri, words) {
  return new Promise((resolve) => {
    const [method, path, ...settings] = words;
    if (method === "PING") return resolve("unsupported no API for a ping");
    const base = new URL(uri.replace("coap:", "http:"));
    const [pathname, query] = path.split("?");
    const host = base.hostname.replace(/[[\]]/g, "");
    const agent = new coap.Agent({ type: host.includes(":") ? "udp6" : "udp4" });
    const options = { agent, hostname: host, port: base.port, method: method === "IPATCH" ? "iPATCH" : method, pathname: decodeURIComponent(pathname), query, confirmable: true };
    let payload, wait = 8, observe = 0, seen = 0, done = false;
    const extra = [];
    for (const word of settings) {
      const [key, value] = word.split(/=(.*)/s);
      if (key === "non") options.confirmable = false;
      else if (key === "payload") payload = Buffer.from(value, "hex");
      else if (key === "digits") payload = digits(Number(value));
      else if (key === "wait") wait = Number(value);
      else if (key === "observe") { observe = Number(value); options.observe = true; }
      else if (key === "opt") extra.push(value.split(":"));
      else if (key === "block") {
        const szx = Math.log2(Number(value)) - 4;
        if (method === "GET") extra.push(["23", Buffer.from([szx]).toString("hex")]);
        else extra.push(["27", Buffer.from([szx]).toString("hex")]);
      }
    }
    // The library sends a body in blocks only if it is asked to.
    if (payload?.length > 1024 && !extra.some(([name]) => name === "27")) extra.push(["27", "06"]);
    const end = (text) => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      resolve(text);
    };
    const timer = setTimeout(() => end("error no answer"), wait * 1000);
    try {
      const request = coap.request(options);
      for (const [name, value] of extra) {
        const known = Object.keys(number).find((key) => number[key] === Number(name)) || name;
        request.setOption(known, Buffer.from(value, "hex"));
      }
      request.on("response", (response) => {
        if (!observe || response.payload === undefined || !response.code.startsWith("2")) { show(response); return end(); }
        response.on("data", (state) => {
          if (done) return;
          show({ code: response.code, payload: state, _packet: response._packet });
          if (++seen === observe) { response.close(); setTimeout(end, 200); }
        });
      });
      request.on("error", (error) => end(`error ${error.message}`));
      request.on("timeout", (error) => end(`error ${error.message}`));
      request.end(payload);
    } catch (error) {
      end(`error ${error.message}`);
    }
  });
}

async function client(uri) {
  if (!uri.startsWith("coap:")) process.exit(UNSUPPORTED);
  console.log("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const text = await ask(uri, line.trim().split(/\s+/));
    if (text) console.log(text);
    console.log(".");
  }
  process.exit(0);
}

const [, , what, ...rest] = process.argv;
if (what === "server") serve(Number(rest[0]), rest[1], rest[2] || "coap");
else client(rest[0]);
