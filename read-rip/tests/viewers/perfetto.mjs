// Loads a trace into Perfetto's trace processor, and prints what SQL says about it.
//
//     node perfetto.mjs ENGINE TRACE < QUERIES
//
// ENGINE is a folder with `engine_bundle.js` and `trace_processor.wasm`, as the Perfetto UI has them. QUERIES is a JSON
// array of SQL texts. The output is a JSON array that has the rows of each query, as arrays of objects. It ends with
// status 1 and a message if the trace processor refuses the trace or a query.
//
// The engine is a script for a worker of a browser. It takes a port of messages from `self.onmessage`, and each message
// is a `TraceProcessorRpcStream` of `trace_processor.proto`. So this file plays the browser, and has the few parts of
// protobuf that these messages need.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const [APPEND, FINALIZE, QUERY] = [1, 2, 3];
const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
const [CELL_NULL, CELL_VARINT, CELL_FLOAT64, CELL_STRING, CELL_BLOB] = [1, 2, 3, 4, 5];
const PIECE = 1 << 24;

/** The bytes of a number of base 128. */
function varint(number) {
  const bytes = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** A field with a number, or with bytes. */
function field(tag, value) {
  if (typeof value === "number") return Buffer.concat([varint(tag * 8 + VARINT), varint(value)]);
  return Buffer.concat([varint(tag * 8 + BYTES), varint(value.length), value]);
}

/** The number at a place in bytes, and the place behind it. */
function readVarint(bytes, at) {
  let [value, shift] = [0n, 0n];
  for (;;) {
    const byte = bytes[at++];
    if (byte === undefined) throw new Error("a number of the reply is cut off");
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
    shift += 7n;
  }
}

/** The fields of a message, as pairs of a tag and a value. */
function* fields(bytes) {
  for (let at = 0; at < bytes.length; ) {
    let key, value;
    [key, at] = readVarint(bytes, at);
    const [tag, type] = [Number(key >> 3n), Number(key & 7n)];
    if (type === VARINT) {
      [value, at] = readVarint(bytes, at);
    } else {
      let length = { [FIXED64]: 8n, [FIXED32]: 4n }[type];
      if (type === BYTES) [length, at] = readVarint(bytes, at);
      if (length === undefined) throw new Error(`the reply has a field of type ${type}`);
      value = bytes.subarray(at, (at += Number(length)));
    }
    yield [tag, value];
  }
}

const text = (bytes) => new TextDecoder().decode(bytes);

/** What a browser has for the engine, which takes its own file from the folder of this one. */
class FileRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const bytes = readFileSync(join(engineFolder, this.url));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
}

/** Rows of a query, in the parts in which they come. */
class Rows {
  columns = [];
  rows = [];
  cells = [];
  isComplete = false;

  add(bytes) {
    for (const [tag, value] of fields(bytes)) {
      if (tag === 1) this.columns.push(text(value));
      if (tag === 2 && value.length > 0) throw new Error(text(value));
      if (tag === 3) this.batch(value);
    }
  }

  batch(bytes) {
    const [numbers, floats, blobs] = [[], [], []];
    let [kinds, strings] = [[], []];
    for (const [tag, value] of fields(bytes)) {
      if (tag === 1) kinds = [...value];
      if (tag === 2) for (let at = 0, one; at < value.length; numbers.push(one)) [one, at] = readVarint(value, at);
      if (tag === 3) for (let at = 0; at < value.length; at += 8) floats.push(Buffer.from(value).readDoubleLE(at));
      if (tag === 4) blobs.push(value);
      if (tag === 5) strings = text(value).split("\0");
      if (tag === 6) this.isComplete = value === 1n;
    }
    for (const kind of kinds) this.cell(kind, numbers, floats, strings, blobs);
  }

  cell(kind, numbers, floats, strings, blobs) {
    const take = {
      [CELL_NULL]: () => null,
      [CELL_VARINT]: () => safe(BigInt.asIntN(64, numbers.shift())),
      [CELL_FLOAT64]: () => floats.shift(),
      [CELL_STRING]: () => strings.shift(),
      [CELL_BLOB]: () => Buffer.from(blobs.shift()).toString("hex"),
    }[kind];
    if (take === undefined) throw new Error(`the reply has a cell of kind ${kind}`);
    this.cells.push(take());
    if (this.cells.length === this.columns.length) {
      this.rows.push(Object.fromEntries(this.columns.map((name, index) => [name, this.cells[index]])));
      this.cells = [];
    }
  }
}

/** A number of JSON, or its digits if it is too large for one. */
function safe(number) {
  const small = Number(number);
  return Number.isSafeInteger(small) ? small : number.toString();
}

/** The trace processor. It answers while it is asked. */
class Engine {
  sequence = 0;
  replies = [];

  constructor(folder) {
    const source = readFileSync(join(folder, "engine_bundle.js"), "utf8");
    const self = { location: { href: "" } };
    // What the engine must not see, because it would take this for a page or for Node: these names mean nothing to it.
    const run = new Function("self", "WorkerGlobalScope", "XMLHttpRequest", "process", "window", "require", source);
    run(self, class {}, FileRequest, undefined, undefined, undefined);
    this.port = { postMessage: (bytes) => this.replies.push(bytes) };
    self.onmessage({ data: this.port });
  }

  /** Sends a request, and returns the fields of all replies to it. */
  ask(method, argument = Buffer.alloc(0)) {
    const message = Buffer.concat([field(1, this.sequence++), field(2, method), argument]);
    this.port.onmessage({ data: new Uint8Array(field(1, message)) });
    const stream = new Uint8Array(Buffer.concat(this.replies.splice(0)));
    const replies = [...fields(stream)].map(([, reply]) => [...fields(reply)]);
    for (const [tag, value] of replies.flat()) {
      if (tag === 5) throw new Error(text(value));
      if (tag === 4) throw new Error(`the trace processor does not know request ${value}`);
    }
    return replies.flat();
  }

  load(trace) {
    for (let at = 0; at < trace.length; at += PIECE) {
      this.check(this.ask(APPEND, field(101, trace.subarray(at, at + PIECE))), 201);
    }
    this.check(this.ask(FINALIZE), 212);
  }

  /** Throws the error of a result. Both results with one have it in field 2 or 1. */
  check(reply, result) {
    for (const [tag, value] of reply) {
      const errors = tag === result ? [...fields(value)].filter(([, error]) => error instanceof Uint8Array) : [];
      for (const [, error] of errors) if (error.length > 0) throw new Error(text(error));
    }
  }

  query(sql) {
    const rows = new Rows();
    for (const [tag, value] of this.ask(QUERY, field(103, field(1, Buffer.from(sql))))) {
      if (tag === 203) rows.add(value);
    }
    if (!rows.isComplete) throw new Error(`the answer is incomplete: ${sql}`);
    return rows.rows;
  }
}

const [engineFolder, tracePath] = process.argv.slice(2);
// What the engine logs is no result.
console.log = console.info = console.warn = console.error;
const engine = new Engine(engineFolder);
// The engine asks for its start in a microtask.
await new Promise((resolve) => setImmediate(resolve));
engine.load(readFileSync(tracePath));
const queries = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(queries.map((sql) => engine.query(sql))) + "\n");
