// A worker in Node (18 or newer), without a package: claim, do, say how it ended.
// FLEETCRON_API_URL=http://127.0.0.1:8470 FLEETCRON_API_KEY=fck_… node worker.mjs reports
// A job for it: {name: hello, schedule: {every: 1m}, pool: reports, run: {python: "shop:hello"}, payload: {who: you}}

const { FLEETCRON_API_URL: api, FLEETCRON_API_KEY: key } = process.env;
const pool = process.argv[2] ?? "default";

async function askOnce(method, path, body = {}, timeout_ms = 40_000) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(timeout_ms);
  const response = await fetch(`${api}/api/v1${path}`, { method, headers, body: JSON.stringify(body), signal });
  const answer = await response.json();
  const again_s = Number(response.headers.get("Retry-After"));
  if (!response.ok) throw Object.assign(new Error(answer.detail), { status: response.status, again_s });
  return answer;
}

const isFinal = ({ status }) => status < 500 && status !== 429; // 429: too often, and when to come back

async function ask(method, path, body) { // a server may be away for a moment; the heartbeat says when that is too long
  for (;;) {
    try {
      return await askOnce(method, path, body);
    } catch (error) {
      if (isFinal(error)) throw error;
      await new Promise((again) => setTimeout(again, 1000 * (error.again_s || 1)));
    }
  }
}

const handlers = {
  async "python:shop:hello"(payload, log) { // what it returns is stored with the run
    log(`hello ${payload.who}\n`);
    return { greeted: payload.who };
  },
};

async function perform(me, run) {
  const began = performance.now();
  const key = { run_id: run.run_id, attempt: run.attempt };
  let end, text = "";
  try {
    end = { outcome: "succeeded", result: await handlers[run.handler](run.payload, (line) => (text += line)) };
  } catch (error) {
    end = { outcome: "failed", error: { code: error.name, text: String(error.message).slice(0, 4000) } };
  }
  await ask("POST", `/workers/${me}/log`, { pieces: [{ ...key, seq: 0, text }] });
  const duration_ms = Math.round(performance.now() - began);
  await ask("POST", `/workers/${me}/finish`, { ends: [{ ...key, ...end, duration_ms }] });
}

const joined = await ask("POST", "/workers", { name: "node-example", pools: { [pool]: 1 } });
const me = joined.worker_id;
// Without a heartbeat others get our runs; a worker that cannot renew must stop before that.
let until = performance.now() + joined.lease_ms;
setInterval(async () => {
  const sent = performance.now();
  try {
    await askOnce("POST", `/workers/${me}/heartbeat`, {}, joined.heartbeat_ms / 2);
    until = sent + joined.lease_ms;
  } catch (error) {
    if (isFinal(error) || performance.now() + joined.heartbeat_ms > until) process.exit(1);
  }
}, joined.heartbeat_ms / 2).unref();
let stopping = false;
async function leave() { // who has left gets nothing from a claim that still waits; who holds a run ends it first
  stopping = true;
  try {
    await askOnce("DELETE", `/workers/${me}`, {}, 5_000);
    process.exit(0);
  } catch {} // refused: it holds a run, and leaves after it
}
process.on("SIGTERM", leave);
console.log(`${me} waits for work`);
while (!stopping) {
  const batch = crypto.randomUUID(); // asked again: the same runs
  const { runs } = await ask("POST", `/workers/${me}/claim`, { pool, room: 1, wait_s: 20, batch });
  for (const run of runs) await perform(me, run);
}
await leave();
