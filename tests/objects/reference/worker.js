// Runs scripts of storage operations: `steps` is a list of [operation, ...arguments].
import { DurableObject } from "cloudflare:workers";

const plain = (value) =>
  value === undefined ? null : value instanceof Map ? [...value].map(([k, v]) => [k, v]) : value;

export class Script extends DurableObject {
  async fetch(request) {
    return Response.json(await this.run(await request.json(), this.ctx.storage));
  }

  async alarm() {}

  async run(steps, on) {
    const said = [];
    for (const [operation, ...args] of steps) {
      try {
        said.push(plain(await this.step(operation, args, on)));
      } catch (error) {
        said.push("error");
      }
    }
    return said;
  }

  async step(operation, args, on) {
    const storage = this.ctx.storage;
    if (operation === "transaction") {
      return await storage.transaction(async (txn) => {
        const said = await this.run(args[0], txn);
        if (args[1] === "rollback") txn.rollback();
        if (args[1] === "throw") throw new Error("on purpose");
        return said;
      });
    }
    if (operation === "transactionSync") {
      return storage.transactionSync(() => {
        const said = args[0].map(([, query, ...bound]) => storage.sql.exec(query, ...bound).toArray());
        if (args[1] === "throw") throw new Error("on purpose");
        return said;
      });
    }
    if (operation === "sql") return storage.sql.exec(...args).toArray();
    if (operation === "raw") return storage.sql.exec(...args).raw().toArray();
    if (operation === "one") return storage.sql.exec(...args).one();
    if (operation === "names") return storage.sql.exec(...args).columnNames;
    if (operation === "next") {
      const cursor = storage.sql.exec(...args);
      return [cursor.next(), cursor.toArray(), cursor.next().done];
    }
    return await on[operation](...args);
  }
}

export default {
  async fetch(request, env) {
    const name = new URL(request.url).pathname;
    return await env.SCRIPTS.get(env.SCRIPTS.idFromName(name)).fetch(request);
  },
};
