// The subject as a class of the reference runtime. Its twin is subject.py; a script of steps runs on both.
import { DurableObject } from "cloudflare:workers";

const CAUGHT = { DataCloneError: "DataCloneError", TypeError: "TypeError", RangeError: "RangeError" };

function fromWire(wire) {
  if (Array.isArray(wire)) return wire.map(fromWire);
  if (wire === null || typeof wire !== "object") return wire;
  const { $: kind, v } = wire;
  switch (kind) {
    case "object": return Object.fromEntries(v.map(([key, value]) => [key, fromWire(value)]));
    case "map": return new Map(v.map(([key, value]) => [fromWire(key), fromWire(value)]));
    case "set": return new Set(v.map(fromWire));
    case "bytes": return Uint8Array.from(v, (byte) => byte);
    case "number": return Number(v);
    case "bigint": return BigInt(v);
    case "date": return new Date(v);
    case "regexp": return new RegExp(v[0], v[1]);
    case "error": return new globalThis[v[0]](v[1]);
    case "function": return () => v;
  }
  throw new Error(`unknown kind ${kind}`);
}

function toWire(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") return { $: "bigint", v: String(value) };
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0)))
    return { $: "number", v: Object.is(value, -0) ? "-0" : String(value) };
  if (typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(toWire);
  if (value instanceof ArrayBuffer) return { $: "bytes", v: [...new Uint8Array(value)] };
  if (ArrayBuffer.isView(value)) return { $: "bytes", v: [...value] };
  if (value instanceof Date) return { $: "date", v: value.getTime() };
  if (value instanceof RegExp) return { $: "regexp", v: [value.source, value.flags] };
  if (value instanceof Set) return { $: "set", v: [...value].map(toWire) };
  if (value instanceof Error) return { $: "error", v: [value.name, value.message] };
  const pairs = value instanceof Map ? [...value] : Object.entries(value);
  return { $: "object", v: pairs.map(([key, item]) => [toWire(key), toWire(item)]) };
}

class Script {
  constructor(ctx) {
    this.ctx = ctx;
    this.storage = ctx.storage;
    this.cursors = {};
    this.log = [];
  }

  caught(error) {
    this.log.push({ error: [CAUGHT[error.name] ?? "Error", error.message] });
  }

  async run(steps, txn) {
    for (const step of steps) {
      if (step[0] === "throw") throw new TypeError(step[1]);
      try {
        this.log.push({ ok: toWire(await this.step(step, txn)) });
      } catch (error) {
        this.caught(error);
      }
    }
  }

  runSync(steps) {
    for (const step of steps) {
      if (step[0] === "throw") throw new TypeError(step[1]);
      try {
        this.log.push({ ok: toWire(this.stepSync(step)) });
      } catch (error) {
        this.caught(error);
      }
    }
  }

  async step([op, ...rest], txn) {
    switch (op) {
      case "transaction": return this.storage.transaction((inner) => this.run(rest[0], inner).then(() => "done"));
      case "keep": return this.storage.transaction(async (inner) => { this.kept = inner; });
      case "shared": {
        const one = [1];
        await this.storage.put("shared", { a: one, b: one });
        const found = await this.storage.get("shared");
        return found.a === found.b;
      }
      case "cycle": {
        const one = [];
        one.push(one);
        await this.storage.put("cycle", one);
        const found = await this.storage.get("cycle");
        return found[0] === found;
      }
      case "fresh": {
        await this.storage.put("fresh", [1]);
        (await this.storage.get("fresh")).push(2);
        return this.storage.get("fresh");
      }
      case "alarm is soon":
        return Math.abs((await this.storage.getAlarm()) - Date.now()) < 60_000;
    }
    if (op.startsWith("transactionSync")) return this.stepSync([op, ...rest]);
    const [target, method] = op.includes(".") ? op.split(".") : ["", op];
    const args = rest.map(fromWire);
    if (target === "txn") return txn[method](...args);
    if (target === "kept") return this.kept[method](...args);
    if (op.startsWith("sql")) return this[op](...args);
        return this.storage[method](...args);
  }

  stepSync([op, ...rest]) {
    if (op === "transactionSync") return this.storage.transactionSync(() => (this.runSync(rest[0]), "done"));
    if (op === "transactionSync of async") return this.storage.transactionSync(async () => "done");
    const args = rest.map(fromWire);
    if (op.startsWith("sql")) return this[op](...args);
    this.storage[op](...args);
    return null;
  }

  sqlRaw(...query) {
    const cursor = this.storage.sql.exec(...query);
    return [cursor.columnNames, [...cursor.raw()]];
  }
  sqlRows(...query) { return this.storage.sql.exec(...query).toArray(); }
  sqlEach(...query) { return [...this.storage.sql.exec(...query)]; }
  sqlOne(...query) { return this.storage.sql.exec(...query).one(); }
  sqlRawOne(...query) { return this.storage.sql.exec(...query).raw().one(); }
  sqlWritten(...query) {
    const cursor = this.storage.sql.exec(...query);
    cursor.toArray();
    return cursor.rowsWritten;
  }
  sqlRead(...query) {
    const cursor = this.storage.sql.exec(...query);
    cursor.toArray();
    return cursor.rowsRead;
  }
  sqlOpen(name, ...query) { this.cursors[name] = this.storage.sql.exec(...query); }
  sqlNext(name) { return this.cursors[name].next(); }
  sqlRawNext(name) { return this.cursors[name].raw().next(); }
  sqlRest(name) { return this.cursors[name].toArray(); }
  sqlRestOne(name) { return this.cursors[name].one(); }
  sqlNames(name) { return this.cursors[name].columnNames; }
  sqlSizeIsOfPages() { return this.storage.sql.databaseSize > 0 && this.storage.sql.databaseSize % 4096 === 0; }
}

class Subject extends DurableObject {
  async run(steps) {
    const script = new Script(this.ctx);
    await script.run(steps);
    return script.log;
  }
  async alarm() {}
}
export class SqlSubject extends Subject {}
export class KeysSubject extends Subject {}

export default {
  async fetch(request, env) {
    const { kind, name, steps } = await request.json();
    const stub = env[kind].get(env[kind].idFromName(name));
    return Response.json(await stub.run(steps));
  },
};
