// Packs the WebAssembly of a site for servers that send packed files, and says how large it is over the wire.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const path = join(process.argv[2], "ebbtide.wasm");
const plain = readFileSync(path);
const params = { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
const packed = { br: brotliCompressSync(plain, { params }), gz: gzipSync(plain, { level: 9 }) };
for (const [ending, bytes] of Object.entries(packed)) writeFileSync(`${path}.${ending}`, bytes);
console.log(`${process.argv[2]}: ${packed.br.length} bytes of WebAssembly over the wire (gzip: ${packed.gz.length})`);
if (packed.br.length > 1_000_000) throw new Error("more than 1 MB over the wire");
