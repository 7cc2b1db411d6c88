// The Node SDK 7: writes each record, reads it again and in the list.
// Reads on standard input what test_readers.py says; prints [as made, as read, as listed] of each record.
const { readFileSync } = require("fs"), { Cloudflare } = require("cloudflare");

async function main() {
  const { base, token, zone_id, bodies } = JSON.parse(readFileSync(0));
  const { records } = new Cloudflare({ apiToken: token, baseURL: base, maxRetries: 0 }).dns;
  const made = [], listed = {}, answers = [];
  for (const body of bodies) made.push(await records.create({ zone_id, ...body }));
  for await (const one of records.list({ zone_id, per_page: 50 })) listed[one.id] = one;
  for (const one of made) answers.push([one, await records.get(one.id, { zone_id }), listed[one.id]]);
  process.stdout.write(JSON.stringify(answers));
}

main().catch(error => { console.error(error); process.exit(1); });
