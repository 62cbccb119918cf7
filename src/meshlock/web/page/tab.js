// A page without a server: Python runs in a worker of this tab, and its handlers answer.

const $ = (id) => document.getElementById(id);
const QUIET = 4000; // milliseconds without a word of Python after which it can be stopped

class Tab {
  constructor(place) {
    this.place = new URL(place, location.href).href;
    this.calls = new Map(); // those that are not answered yet, by number
    this.made = 0;
    this.heard = performance.now();
    this.begin();
    setInterval(() => this.watch(), 500);
  }

  begin() {
    this.ready = false;
    this.progress(0, "Loading Python");
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hears(data);
    this.worker.onerror = (event) => this.progress(0, `Python does not start: ${event.message || "a file is missing"}`);
    this.worker.postMessage({ place: this.place });
  }

  hears({ id, part, done, said, ready, why, head, body, end }) {
    this.heard = performance.now();
    if (why) this.progress(0, `Python does not start: ${why}`);
    else if (said) this.progress(part / done, said);
    else if (ready) this.starts();
    const call = this.calls.get(id);
    if (!call) return;
    if (head) call.resolve(new Response(call.stream, head));
    if (body) call.writer.enqueue(body);
    if (end) {
      this.calls.delete(id);
      call.writer.close();
    }
  }

  starts() {
    this.ready = true;
    this.progress(1, "");
    window.dispatchEvent(new Event("python-ready"));
  }

  // As fetch() does.
  call(path, { method = "GET", headers = {}, body = "", signal } = {}) {
    const id = (this.made += 1);
    return new Promise((resolve, reject) => {
      const call = { resolve, reject, since: performance.now() };
      call.stream = new ReadableStream({ start: (writer) => { call.writer = writer; } });
      this.calls.set(id, call);
      signal?.addEventListener("abort", () => {
        this.worker.postMessage({ id, stop: true });
        this.fail(id, new DOMException("stopped", "AbortError"));
      });
      this.worker.postMessage({ id, path, method, headers, body });
    });
  }

  fail(id, error) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    call?.reject(error);
    try { call?.writer.error(error); } catch { /* it had ended */ }
  }

  // Python that says nothing for a while, in an endless loop perhaps, can only be started again.
  watch() {
    const since = Math.min(...[...this.calls.values()].map((call) => call.since));
    const busy = this.ready && performance.now() - Math.max(this.heard, since) > QUIET;
    $("stop-python")?.toggleAttribute("hidden", !busy);
  }

  restart() {
    this.worker.terminate();
    for (const id of [...this.calls.keys()]) this.fail(id, new Error("Python was stopped and starts again: what was open in it is gone."));
    this.begin();
  }

  progress(part, text) {
    const bar = $("loading") ?? this.bar();
    bar.hidden = !text;
    bar.querySelector("progress").value = part;
    bar.querySelector("span").textContent = text;
  }

  bar() {
    const bar = Object.assign(document.createElement("div"), { id: "loading" });
    bar.setAttribute("role", "status");
    bar.append(document.createElement("progress"), document.createElement("span"));
    const stop = Object.assign(document.createElement("button"), { id: "stop-python", type: "button", textContent: "Python is busy: stop it", hidden: true });
    stop.addEventListener("click", () => this.restart());
    document.body.append(bar, stop);
    return bar;
  }
}

export const tab = (place) => new Tab(place);
