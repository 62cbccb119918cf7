// Python in a worker: it starts, imports the laboratory, and answers what the page asks.

const STEPS = ["Loading Python", "Starting Python", "Loading the laboratory", "Opening the laboratory"];
let tab = null;
let early = []; // asked before Python is there

const says = (step) => self.postMessage({ said: STEPS[step], part: step + 0.5, done: STEPS.length });

async function begin(place) {
  says(0);
  const bytes = fetch(`${place}meshlock.zip`).then((answer) => answer.arrayBuffer());
  const { loadPyodide } = await import(`${place}pyodide.mjs`);
  says(1);
  const python = await loadPyodide({ indexURL: place });
  says(2);
  python.unpackArchive(new Uint8Array(await bytes), "zip", { extractDir: "/meshlock" });
  python.pyimport("sys").path.append("/meshlock");
  says(3);
  tab = python.pyimport("meshlock.web.tab").Tab();
  self.postMessage({ ready: true });
  for (const one of early) answer(one);
  early = [];
}

function answer({ id, stop, path, method, headers, body }) {
  if (stop) return tab.stop(id);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  return tab.call(id, JSON.stringify([method, path, headers]), bytes,
    (status, kind) => self.postMessage({ id, head: { status, headers: { "Content-Type": kind } } }),
    (part) => self.postMessage({ id, body: part.toJs() }),
    () => self.postMessage({ id, end: true }));
}

self.onmessage = ({ data }) => {
  if (data.place) begin(data.place).catch((error) => self.postMessage({ why: String(error.message ?? error).trim().split("\n").at(-1) }));
  else if (tab) answer(data);
  else early.push(data);
};
