// One instance of the testbed. The first message has the compiled module; each one after that is a request, with the
// bytes that belong to it, and gets one answer in the same order.
const encoder = new TextEncoder();
const decoder = new TextDecoder();
let testbed;

function call(request, bytes) {
  const line = encoder.encode(`${JSON.stringify(request)}\n`);
  const length = line.length + (bytes ? bytes.length : 0);
  const place = testbed.input(length);
  const input = new Uint8Array(testbed.memory.buffer, place, length);
  input.set(line);
  if (bytes) input.set(bytes, line.length);
  try {
    testbed.call();
  } catch (trap) {
    const output = new Uint8Array(testbed.memory.buffer, testbed.output(), testbed.output_length());
    throw new Error(`the testbed failed: ${decoder.decode(output) || trap.message}`);
  }
  return new Uint8Array(testbed.memory.buffer, testbed.output(), testbed.output_length()).slice();
}

onmessage = async ({ data }) => {
  if (data.module) {
    testbed = (await WebAssembly.instantiate(data.module, {})).exports;
    postMessage({ ready: true });
    return;
  }
  try {
    const output = call(data.request, data.bytes);
    if (data.request.op === "compute" && output[0] === 0x7b && !decoder.decode(output.subarray(0, 10)).startsWith('{"error"')) {
      postMessage({ bytes: output }, [output.buffer]);
    } else {
      postMessage({ answer: JSON.parse(decoder.decode(output)) });
    }
  } catch (error) {
    postMessage({ answer: { error: error.message } });
  }
};
