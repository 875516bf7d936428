// A worker in Node (18 or newer), without a package: claim, do, say how it ended.
// FLEETCRON_API=http://127.0.0.1:8470 FLEETCRON_API_KEY=fck_… node worker.mjs reports
// A job for it: {name: hello, schedule: {every: 1m}, pool: reports, run: {python: "shop:hello"}, payload: {who: you}}

const { FLEETCRON_API: api, FLEETCRON_API_KEY: key } = process.env;
const pool = process.argv[2];

async function ask(method, path, body = {}) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(`${api}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.detail), { status: response.status });
  return answer;
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
// Without a heartbeat others get our runs; a worker that was declared lost must stop.
setInterval(() => ask("POST", `/workers/${me}/heartbeat`).catch(() => process.exit(1)), joined.heartbeat_ms).unref();
console.log(`${me} waits for work`);
for (;;) {
  const { runs } = await ask("POST", `/workers/${me}/claim`, { pool, room: 1, wait_s: 20 });
  for (const run of runs) await perform(me, run);
}
