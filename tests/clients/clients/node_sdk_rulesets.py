#!/usr/bin/env python3
# official Node SDK: both procedures of the managed ruleset, rules kept by their id, a custom ruleset, dry run, refusals as its error classes
import os,sys; sys.path.insert(0,os.path.join(os.path.dirname(os.path.abspath(__file__)),"..","lib")); import hx
JS = r'''
const assert = require("assert"), { Cloudflare, NotFoundError, BadRequestError } = require("cloudflare");
const e = process.env, zone_id = e.ZONE_ID, account_id = e.EDGE_ACCOUNT_ID, phase = "http_request_firewall_managed";
const api = new Cloudflare({ apiToken: e.EDGE_TOKEN, baseURL: e.EDGE_API_BASE, maxRetries: 0 });
const all = async pages => { const found = []; for await (const one of pages) found.push(one); return found; };

async function managed() {
  const [owasp] = (await all(api.rulesets.list({ account_id }))).filter(one => one.kind === "managed" && one.name.includes("OWASP"));
  return api.rulesets.get(owasp.id, { account_id });
}

async function procedures(owasp) {
  const anomaly = owasp.rules.at(-1);
  assert.equal(anomaly.action, "block"); assert(anomaly.score_threshold >= 1);
  const made = await api.rulesets.phases.update(phase, { zone_id, rules: [{ action: "execute", expression: "true", action_parameters: { id: owasp.id } }] });
  const rule = made.rules[0], where = { zone_id, ruleset_id: made.id };
  const categories = [3, 4].map(level => ({ category: `paranoia-level-${level}`, enabled: false }));
  const rules = [{ id: anomaly.id, score_threshold: 60, action: "managed_challenge" }];
  await api.rulesets.rules.edit(rule.id, { ...where, action: "execute", expression: "true", enabled: true, action_parameters: { id: owasp.id, overrides: { categories } } });
  await api.rulesets.rules.edit(rule.id, { ...where, action: "execute", expression: "true", enabled: true, action_parameters: { id: owasp.id, overrides: { categories, rules } } });
  const now = (await api.rulesets.phases.get(phase, { zone_id })).rules[0];
  assert.equal(now.id, rule.id); assert.deepEqual(now.action_parameters.overrides, { categories, rules });
  const put = await api.rulesets.phases.update(phase, { zone_id, rules: [{ action: "skip", expression: "ssl", action_parameters: { ruleset: "current" } }, { id: rule.id }] });
  assert.deepEqual(put.rules[1], now);
  assert((await all(api.rulesets.versions.list(made.id, { zone_id }))).length >= 4);
  assert.equal((await api.rulesets.rules.delete(put.rules[0].id, where)).rules.length, 1);
}

async function custom() {
  const made = await api.rulesets.create({ account_id, name: e.RUNID, kind: "custom", phase: "http_request_firewall_custom", rules: [{ action: "block", expression: 'http.host eq "a"' }] });
  const more = await api.rulesets.rules.create(made.id, { account_id, action: "log", expression: "ssl", position: { index: 1 } });
  assert.deepEqual(more.rules.map(one => one.action), ["log", "block"]);
  await api.rulesets.delete(made.id, { account_id });
  await assert.rejects(api.rulesets.get(made.id, { account_id }), NotFoundError);
}

async function refusals(owasp) {
  const overrides = { rules: [{ id: "0".repeat(32), enabled: false }] };
  const rules = [{ action: "block", expression: "http.hots eq 1" }, { action: "execute", expression: "true", action_parameters: { id: owasp.id, overrides } }];
  const wrong = api.rulesets.phases.update(phase, { zone_id, rules: rules.slice(1) }, { query: { dry_run: "true" } });
  await assert.rejects(wrong, error => error instanceof BadRequestError && error.errors[0].source.pointer === "/rules/0/action_parameters/overrides/rules/0/id");
  const both = api.rulesets.phases.update(phase, { zone_id, rules });
  await assert.rejects(both, error => error instanceof BadRequestError && error.errors.length === 2);
}

(async () => { const owasp = await managed(); await procedures(owasp); await custom(); await refusals(owasp); console.log("JSOK"); })().catch(error => { console.error(error); process.exit(1); });
'''
def go():
    z=hx.zone_id()
    try: p=hx.run(['node','-e',JS],env=dict(NODE_PATH=os.path.join(hx.HOME,'npm/sdk/node_modules'),RUNID=hx.RUN,ZONE_ID=z)); hx.check('JSOK' in p.stdout,p.stdout+p.stderr)
    finally: hx.api('PUT','/zones/%s/rulesets/phases/http_request_firewall_managed/entrypoint'%z,{'rules':[]})
hx.main('node_sdk_rulesets',go,clean=False)
