// The menu: scenarios, counterexamples of mutants, runs of the studies, riddles, and files.

import { ask, post } from "./run.js";
import { call } from "./server.js";
import { element } from "./side.js";

const $ = (id) => document.getElementById(id);
const KINDS = { lesson: "Lessons", scenario: "Scenarios", mutant: "Mutants", study: "Studies", riddle: "Riddles" };
const MOST_BYTES = 32_000_000;
const PIECE = 60_000; // bytes; requests are short

export class Menu {
  constructor(page) {
    this.page = page;
    this.offered = null;
    this.kind = "scenario";
    this.busy = null; // stops what is being made
    $("menu-open").addEventListener("click", () => this.show());
    $("menu-search").addEventListener("input", () => this.list());
    $("menu").addEventListener("close", () => this.busy?.abort());
    $("file-open").addEventListener("click", () => $("file").click());
    $("file").addEventListener("change", () => { if ($("file").files[0]) this.file($("file").files[0]); });
    $("save").addEventListener("click", () => this.save("trace.jsonl", "run.jsonl"));
    $("export").addEventListener("click", () => this.save("run.html", "run.html"));
  }

  async show() {
    this.says("");
    $("menu").showModal();
    this.offered ??= await ask("/api/menu");
    $("menu-kinds").replaceChildren(...Object.entries(KINDS).map(([kind, text]) => element("button", { type: "button", "data-kind": kind, "aria-pressed": String(kind === this.kind), text: `${text} (${this.offered[kind].length})`, onclick: () => this.choose(kind) })));
    if (!$("menu-algorithm").options.length) $("menu-algorithm").replaceChildren(element("option", { value: "", text: "as written" }), ...this.offered.algorithms.map((name) => element("option", { value: name, text: name })));
    this.list();
    $("menu-search").focus();
  }

  choose(kind) {
    this.kind = kind;
    for (const button of $("menu-kinds").children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    this.list();
  }

  list() {
    if (!this.offered) return;
    const { kind } = this;
    $("menu-by").hidden = kind !== "scenario";
    const sought = $("menu-search").value.trim().toLowerCase();
    const entries = this.offered[kind].filter((entry) => `${entry.name} ${entry.title} ${entry.breaks ?? ""}`.toLowerCase().includes(sought));
    const called = (entry) => (kind === "riddle" ? `Riddle ${entry.name}` : entry.name);
    const told = (entry) => (kind === "mutant" ? `${entry.title} (breaks ${entry.breaks})` : kind === "riddle" ? `${entry.title}; ${entry.steps === 1 ? "1 step" : `${entry.steps} steps`} at least` : entry.title);
    const family = (entry) => (kind === "mutant" ? entry.name.split("/")[0] : "");
    const heads = new Map(entries.map((entry) => [family(entry), entry])); // by algorithm, in their order
    const count = (name) => entries.filter((entry) => family(entry) === name).length;
    const head = (name) => (name ? [element("h3", { text: `${name} (${count(name)})` })] : []);
    const row = (entry) => element("button", { type: "button", "data-name": entry.name, onclick: () => this.open({ kind, name: entry.name, algorithm: kind === "scenario" ? $("menu-algorithm").value : "" }) }, element("b", { text: called(entry) }), element("span", { text: told(entry) }));
    const rows = [...heads.keys()].flatMap((name) => [...head(name), ...entries.filter((entry) => family(entry) === name).map(row)]);
    $("menu-list").replaceChildren(...(rows.length ? rows : [element("p", { class: "muted", text: "Nothing in this part of the menu is called that." })]));
  }

  says(text, wrong = false) {
    $("menu-says").textContent = text;
    $("menu-says").className = wrong ? "wrong" : "muted";
  }

  // Open an entry; what takes a while says how far it is.
  async open(wanted) {
    this.busy?.abort();
    const busy = new AbortController();
    this.busy = busy;
    this.says(wanted.kind === "mutant" ? "The checker looks for the shortest way …" : "…");
    try {
      const run = await this.made(wanted, busy.signal);
      $("menu").close();
      await this.page.open(run, 0, wanted.kind === "riddle" ? { drive: { riddle: wanted.name, actions: [] } } : null);
      return true;
    } catch (error) {
      if (error.name !== "AbortError") this.says(error.message, true);
      return false;
    } finally {
      if (this.busy === busy) this.busy = null;
    }
  }

  // The name of the run that an entry makes.
  async made(wanted, signal) {
    const answer = await call("/api/menu", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted), signal });
    if (!answer.ok) throw new Error((await answer.json()).why);
    return (await told(answer, (text) => this.says(`The checker looks for the shortest way: ${text}.`))).run;
  }

  // A trace from this machine's disk.
  async file(file) {
    $("file").value = "";
    try {
      const packed = file.name.endsWith(".gz");
      if (!packed && file.size > MOST_BYTES) throw new Error(`${file.name} is longer than ${MOST_BYTES / 1e6} MB: open it with meshlock view FILE.`);
      const { file: name } = await post("/api/files", {});
      const bytes = packed ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
      let sent = 0;
      for (const reader = bytes.getReader(); ;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (let from = 0; from < value.length; from += PIECE) {
          await ask(`/api/files/${name}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: value.slice(from, from + PIECE) });
        }
        sent += value.length;
        this.says(`Reading ${file.name}: ${(sent / 1e6).toFixed(1)} MB …`);
      }
      const { run } = await post(`/api/files/${name}/end`, { name: file.name });
      $("menu").close();
      await this.page.open(run);
    } catch (error) {
      this.says(error.message, true);
    }
  }

  async save(what, name) {
    try {
      const answer = await call(`${this.page.run.path}/${what}`);
      if (!answer.ok) throw new Error((await answer.json()).why);
      const place = URL.createObjectURL(await answer.blob());
      element("a", { href: place, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(place), 60_000);
      this.says(`${name} is saved.`);
    } catch (error) {
      this.says(error.message, true);
    }
  }
}

// What the lines of an answer end with; others say how far it is.
export async function told(answer, progress) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("The connection was closed: is the server still running?");
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines.map((text) => JSON.parse(text))) {
      if (line.why) throw Object.assign(new Error(line.why), { place: line });
      if (line.run || line.holds) return line;
      progress(line.progress);
    }
  }
}
