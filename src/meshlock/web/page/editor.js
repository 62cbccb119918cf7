// The reader changes an algorithm, or writes one, and the checker looks for the shortest way to break it.

import { coloured } from "./code.js";
import { ask, post } from "./run.js";
import { call } from "./server.js";
import { element } from "./side.js";
import { told } from "./menu.js";

const OWN = "mine.py";
const $ = (id) => document.getElementById(id);

export class Editor {
  constructor(page) {
    this.page = page;
    this.algorithm = "";
    this.real = {}; // its files as they are in meshlock
    this.texts = {}; // as they are here
    this.file = "";
    this.setup = { nodes: 3, topology: "line", permits: 1, requests: "", flips: 0, links: "fifo" };
    this.wrong = null; // { file, line } of an error
    this.busy = null; // stops the check
    this.ran = new Map(); // file: lines that ran in the step at hand
    this.made = ""; // the algorithm whose lines these are
  }

  // -- what is edited ---------------------------------------------------------------------------

  async load(algorithm, files = {}, setup = {}) {
    const { files: real, topology } = await ask(`/api/sources/${encodeURIComponent(algorithm)}`);
    Object.assign(this, { algorithm, real, texts: { ...real, ...files }, file: Object.keys({ ...files, ...real })[0], wrong: null, made: "" });
    Object.assign(this.setup, { topology, permits: 1 }, setup);
    this.build();
    this.says(this.changed().length ? "" : algorithm === OWN ? "This lock looks right. Press Check." : "Change a line, and press Check.");
  }

  changed() {
    return Object.keys(this.texts).filter((file) => this.texts[file] !== this.real[file]);
  }

  // What a link must hold to make the same again.
  value() {
    const files = Object.fromEntries((this.algorithm === OWN ? Object.keys(this.texts) : this.changed()).map((file) => [file, this.texts[file]]));
    return { algorithm: this.algorithm, files, setup: { ...this.setup } };
  }

  // The same as the handlers want it.
  asked() {
    const { algorithm, files, setup } = this.value();
    const requests = setup.requests.split(/[\s,]+/).filter(Boolean);
    return { algorithm, files, setup: { ...setup, requests } };
  }

  // -- what is shown ----------------------------------------------------------------------------

  build() {
    const { page, setup } = this;
    const names = [OWN, ...page.offered.algorithms.map((entry) => entry.name)];
    const select = element("select", { id: "edit-algorithm", "aria-label": "Algorithm", onchange: () => this.load(select.value).catch((error) => this.says(error.message, true)) }, ...names.map((name) => element("option", { value: name, text: name === OWN ? "a lock of your own" : name })));
    select.value = this.algorithm;
    const files = Object.keys(this.texts).map((file) => element("button", { type: "button", class: "quiet file", "data-file": file, text: file, onclick: () => this.open(file) }));
    this.behind = element("pre", { "aria-hidden": "true" });
    this.area = element("textarea", { id: "edit-text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": "The algorithm's file" });
    this.area.addEventListener("input", () => this.typed());
    this.area.addEventListener("scroll", () => this.scrolled());
    this.area.addEventListener("keydown", (event) => this.key(event));
    const field = (key, kind, more, ...options) => {
      const input = element(kind, { id: `edit-${key}`, ...more, onchange: () => { setup[key] = input.type === "number" ? Number(input.value) : input.value; } }, ...options.map((name) => element("option", { value: name, text: name })));
      input.value = String(setup[key]);
      return input;
    };
    const set = (text, ...parts) => element("label", {}, text, ...parts);
    $("pane-code").replaceChildren(
      element("div", { class: "row" }, select, ...(files.length > 1 ? files : []), element("span", { class: "gap" }), element("button", { type: "button", id: "edit-reset", class: "quiet", text: "Reset", onclick: () => this.load(this.algorithm) })),
      element("div", { class: "editor" }, this.behind, this.area),
      element("div", { class: "fields set-up" },
        set("nodes", field("nodes", "input", { type: "number", min: "2", max: "6" })),
        set("topology", field("topology", "select", {}, "line", "ring", "star", "tree", "complete")),
        set("permits", field("permits", "input", { type: "number", min: "1", max: "6" })),
        set("links", field("links", "select", {}, "fifo", "unordered")),
        set("link changes", field("flips", "input", { type: "number", min: "0", max: "3" })),
        set("requests", field("requests", "input", { type: "text", placeholder: "0 1 2:1@5", title: "NODE:PERMITS@PRIORITY; without any, each node makes one" }))),
      element("div", { class: "row" },
        element("button", { type: "button", id: "edit-check", class: "primary", text: "Check", title: "Ctrl-Enter", onclick: () => (this.busy ? this.busy.abort() : this.check()) }),
        element("button", { type: "button", id: "edit-drive", text: "Drive by hand", onclick: () => this.drive() }),
        element("p", { id: "edit-says", role: "status", class: "muted" })));
    this.open(this.file);
  }

  open(file) {
    this.file = file;
    this.area.value = this.texts[file];
    this.area.scrollTop = 0;
    for (const button of $("pane-code").querySelectorAll(".file")) button.setAttribute("aria-pressed", String(button.dataset.file === file));
    this.draw();
  }

  typed() {
    this.texts[this.file] = this.area.value;
    this.wrong = null;
    this.made = "";
    this.draw();
  }

  draw() {
    const lit = this.ran.get(this.file) ?? [];
    this.behind.replaceChildren(...coloured(this.texts[this.file].split("\n")).map((pieces, place) => {
      const wrong = this.wrong?.file === this.file && this.wrong.line === place + 1;
      return element("div", { class: wrong ? "bad" : this.made && lit.includes(place + 1) ? "lit" : "" }, ...pieces);
    }));
    this.scrolled();
  }

  scrolled() {
    this.behind.scrollTop = this.area.scrollTop;
    this.behind.scrollLeft = this.area.scrollLeft;
  }

  show(line) {
    const high = this.area.scrollHeight / Math.max(this.texts[this.file].split("\n").length, 1);
    const top = (line - 1) * high;
    if (top < this.area.scrollTop || top > this.area.scrollTop + this.area.clientHeight - 3 * high) this.area.scrollTop = Math.max(0, top - this.area.clientHeight / 3);
    this.scrolled();
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.check();
    else if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey) document.execCommand("insertText", false, "    ");
    else if (event.key === "Escape") $("edit-check").focus(); // so that Tab can leave the text
    else return;
    event.preventDefault();
  }

  says(text, wrong = false) {
    $("edit-says").textContent = text;
    $("edit-says").className = wrong ? "wrong" : "muted";
  }

  // The lines that ran in this step of the run at hand, if it is of this text.
  lights(run, step) {
    if (run.setup.algorithm !== this.made) return;
    this.ran = new Map();
    for (const part of run.ran.get(step) ?? []) {
      const file = part.file.split(" ")[0];
      const name = Object.keys(this.texts).find((each) => each.endsWith(file)) ?? file;
      this.ran.set(name, [...(this.ran.get(name) ?? []), ...part.lit]);
    }
    if (!this.ran.has(this.file) && [...this.ran.keys()][0] in this.texts) this.open([...this.ran.keys()][0]);
    this.draw();
    const [first] = this.ran.get(this.file) ?? []; // of the handler that was called
    if (first) this.show(first);
  }

  // -- what is done with it ---------------------------------------------------------------------

  fails(error) {
    this.wrong = error.place ?? null;
    this.says(error.message, true);
    if (!this.wrong?.file) return;
    if (this.wrong.file !== this.file && this.wrong.file in this.texts) this.open(this.wrong.file);
    this.draw();
    this.show(this.wrong.line);
  }

  // Look for the shortest counterexample and play it; resolves to whether there is one.
  async check(step = null) {
    this.busy?.abort();
    const busy = new AbortController();
    this.busy = busy;
    const value = this.value();
    this.wrong = null;
    this.draw();
    $("edit-check").textContent = "Stop";
    this.says("The checker looks at every order of events …");
    try {
      const found = await this.search(busy.signal);
      if (found.holds) this.says(found.holds);
      else await this.plays(found.run, { check: value }, step);
      return true;
    } catch (error) {
      if (error.name === "AbortError") this.says("Stopped.");
      else this.fails(error);
      return false;
    } finally {
      if (this.busy === busy) {
        this.busy = null;
        $("edit-check").textContent = "Check";
      }
    }
  }

  async search(signal) {
    const answer = await call("/api/checks", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(this.asked()), signal });
    return told(answer, (text) => this.says(`${text} …`));
  }

  // The name of the counterexample that a link holds.
  async found({ algorithm, files, setup }) {
    await this.load(algorithm, files, setup);
    const { run } = await this.search();
    return run;
  }

  async plays(run, made, step) {
    const { page } = this;
    await page.open(run, step ?? 0, made);
    this.made = page.run.setup.algorithm;
    page.choose("code");
    const [found] = page.run.about.violated;
    const { steps } = page.run;
    this.says(`${found?.property ?? "A property"} is violated, in ${steps === 1 ? "1 step" : `${steps} steps`} and no fewer.`, true);
    if (step === null) page.play(1);
  }

  async drive() {
    const value = this.value();
    try {
      const { algorithm } = await this.make();
      const { nodes, topology } = this.setup;
      const settings = { algorithm, nodes, topology, permits: this.setup.permits, seed: 1 };
      const { run } = await post("/api/runs", settings);
      await this.page.open(run, 0, { drive: { edited: value, settings, actions: [] } });
    } catch (error) {
      this.fails(error);
    }
  }

  // The algorithm as it is here gets a name.
  async make() {
    const made = await post("/api/edited", this.asked());
    this.made = made.algorithm;
    return made;
  }
}
