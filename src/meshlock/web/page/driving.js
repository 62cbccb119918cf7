// Try it yourself: the reader asks, delivers, cuts and moves; the server's nodes answer.

import { redraw } from "./redraw.js";
import { post } from "./run.js";
import { element } from "./side.js";
import { Riddle } from "./riddle.js";
import { message as described } from "./words.js";

const $ = (id) => document.getElementById(id);
const NAMES = { range: "by radio range", grid: "grid", ring: "ring", line: "line", star: "star", tree: "tree", complete: "complete" };

export class Driving {
  constructor(page, offered) {
    this.page = page;
    this.offered = offered;
    this.chosen = { algorithm: "jiang", topology: "range", nodes: 8, permits: 3, seed: 1, members: 0 };
    this.auto = false;
    this.busy = 0; // actions that are not done yet
    this.actions = Promise.resolve(); // the last of them
    this.error = "";
    this.end = -1; // of a link, as chosen beside the other one
    this.riddle = new Riddle(this);
    setInterval(() => this.tick(), 80);
    this.last = 0;
    $("deliver-now").addEventListener("click", () => this.do({ do: "next" }));
  }

  async start() {
    try {
      const settings = this.settings();
      const { run } = await post("/api/runs", settings);
      this.error = "";
      await this.page.open(run, 0, { drive: { settings, actions: [] } });
    } catch (error) {
      this.error = error.message;
      this.page.refresh();
    }
  }

  // A run with this algorithm, on a tree where it can be.
  async begin(algorithm) {
    Object.assign(this.chosen, { algorithm, topology: "tree", nodes: 7 });
    this.choice = undefined;
    await this.start();
  }

  // A run that somebody made elsewhere: what it began with, and what was done then.
  async again(made) {
    const { settings, riddle, edited, from, step, actions } = made;
    const run = await this.replayed(made);
    await this.page.open(run, 0, { drive: { settings, riddle, edited, from, step, actions: [...actions] } });
  }

  // The name of such a run at its beginning; of one that left another, that one is made before.
  async begun({ settings, riddle, edited, from, step }) {
    const { page } = this;
    if (from) {
      const parent = from.menu ? await page.menu.made(from.menu) : from.check ? await page.editor.found(from.check) : await this.replayed(from.drive);
      return (await post("/api/runs", { fork: parent, step })).run;
    }
    if (riddle) return page.menu.made({ kind: "riddle", name: riddle });
    let asked = settings;
    if (edited) asked = { ...settings, algorithm: (await page.editor.make()).algorithm };
    return (await post("/api/runs", asked)).run;
  }

  async replayed(made) {
    const run = await this.begun(made);
    for (const action of made.actions) await post(`/api/runs/${encodeURIComponent(run)}/actions`, action);
    return run;
  }

  // What is chosen, as far as the algorithm leaves a choice.
  settings() {
    const { chosen, offered } = this;
    const { mutex, token } = offered.algorithms.find((entry) => entry.name === chosen.algorithm);
    return { ...chosen, permits: mutex ? 1 : chosen.permits, members: token && chosen.members ? chosen.nodes : 0 };
  }

  // One after the other: whatever is asked for while another action is under way is done after it.
  do(action) {
    const { run } = this.page;
    const here = this.page.target ?? this.page.step;
    const past = !this.busy && here < run.steps ? here : null; // looked at, and left for this action
    this.busy += 1;
    this.actions = this.actions.then(() => this.perform(action, run, past)).finally(() => { this.busy -= 1; });
    return this.actions;
  }

  // Another step than the one that was taken then begins another branch.
  async perform(action, run, past) {
    const { page } = this;
    if (past !== null && page.run === run && action.do !== "undo") {
      if (!await page.branches.leave(past)) return false;
      run = page.run;
    }
    const elsewhere = () => page.run !== run; // another one was opened meanwhile
    try {
      if (elsewhere()) return false;
      const from = run.steps;
      const about = await post(`${run.path}/actions`, action);
      this.keep(action);
      if (elsewhere()) return true;
      this.error = "";
      page.pause();
      await page.grown(about);
      if (elsewhere()) return true;
      if (about.steps > from) {
        page.position = Math.max(Math.min(page.position, from), from);
        page.target = about.steps;
        page.dirty = true;
      } else await page.go(about.steps);
      return true;
    } catch (error) {
      this.error = error.message;
      page.refresh();
      return false;
    } finally {
      this.last = performance.now();
    }
  }

  // For a link to this run.
  keep(action) {
    const { actions } = this.page.made?.drive ?? { actions: [] };
    if (action.do === "undo") actions.pop();
    else actions.push(action);
  }

  tick() {
    const { page } = this;
    if (!this.auto || this.busy || page.target !== null || page.stage.dragged || !page.run?.about.driven) return;
    if (performance.now() - this.last < 1000 / Math.min(page.speed, 12)) return;
    if (page.step === page.run.steps && page.stage.snapshot?.flying.size) this.do({ do: "next" });
  }

  // -- on the network ---------------------------------------------------------------------

  clicks(what, at) {
    $("ask").hidden = true;
    if (what?.message !== undefined) {
      this.do({ do: "deliver", id: what.message });
      return true;
    }
    if (what?.link) {
      const [one, other] = what.link.split("-").map(Number);
      this.do({ do: what.gone ? "join" : "cut", one, other });
      return true;
    }
    if (what?.node >= 0) {
      this.page.stage.selected = what.node;
      this.page.refresh();
      this.form(what.node, at);
      return true;
    }
    return false;
  }

  drags(node, to) {
    $("ask").hidden = true;
    $("tip").hidden = true;
    this.page.stage.selected = node;
    this.page.stage.dragged = { node, ...to };
  }

  async drops(node, to) {
    const { page } = this;
    const { stage } = page;
    if (page.run.about.driven.range) await this.do({ do: "move", node, x: to.x, y: to.y });
    else stage.home[node] = to;
    stage.dragged = null;
    page.refresh();
  }

  asks(node) {
    if (node >= 0 && this.page.stage.places[node]) this.form(node, this.page.stage.places[node]);
  }

  // The little form at a node: ask, or leave.
  form(node, at) {
    const { page } = this;
    const { driven } = page.run.about;
    const card = $("ask");
    const clients = [...(page.stage.snapshot?.clients.values() ?? [])].filter((client) => client.node === node);
    const inside = clients.find((client) => client.entered >= 0);
    const parts = [element("b", { text: `Node ${node}` })];
    if (inside) parts.push(element("button", { type: "button", class: "primary", text: "Leave", onclick: () => { card.hidden = true; this.do({ do: "leave", node }); } }));
    if (inside?.want > 1 && !page.run.about.riddle) parts.push(element("button", { type: "button", id: "release-part", text: "Release 1", onclick: () => { card.hidden = true; this.do({ do: "release", node, permits: 1 }); } }));
    const waiting = clients.find((client) => client.entered < 0);
    if (waiting && driven.priorities && !page.run.about.riddle) {
      const urgent = element("input", { type: "number", id: "raise-priority", min: "0", max: "99", value: String(waiting.priority) });
      parts.push(element("label", {}, "priority", urgent), element("button", { type: "button", id: "raise", text: "Change priority", onclick: () => { card.hidden = true; this.do({ do: "raise", node, priority: Number(urgent.value) }); } }));
    }
    if (driven.members) {
      const gone = page.stage.snapshot?.gone.has(node);
      parts.push(element("button", { type: "button", id: "crash", text: gone ? "Restart" : "Crash", onclick: () => { card.hidden = true; this.do({ do: gone ? "restart" : "crash", node }); } }));
    }
    if (page.run.about.riddle) parts.push(...this.riddle.requests(page.step === page.run.steps, node));
    else if (!page.stage.snapshot?.gone.has(node)) {
      const want = element("input", { type: "number", id: "ask-want", min: "1", max: String(driven.one_permit ? 1 : page.run.permits), value: "1" });
      const priority = element("input", { type: "number", id: "ask-priority", min: "0", max: "99", value: "0" });
      if (!driven.one_permit) parts.push(element("label", {}, "permits", want));
      if (driven.priorities) parts.push(element("label", {}, "priority", priority));
      parts.push(element("button", { class: inside ? "" : "primary", id: "ask-go", text: "Ask" }));
      card.onsubmit = (event) => {
        event.preventDefault();
        card.hidden = true;
        this.do({ do: "ask", node, want: Number(want.value), priority: Number(priority.value) });
      };
    }
    if (page.run.setup.choices) parts.push(element("label", {}, "behaviour", this.behaviour(node)));
    card.replaceChildren(...parts);
    card.hidden = false;
    const box = $("stage");
    const beside = at.x + 34 + 218 < box.clientWidth ? at.x + 34 : at.x - 244; // the node stays in sight
    card.style.left = `${Math.max(8, Math.min(beside, box.clientWidth - 224))}px`;
    card.style.top = `${Math.max(8, Math.min(at.y - 20, box.clientHeight - card.offsetHeight - 8))}px`;
    card.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      card.hidden = true;
      $("network").focus();
    };
    card.querySelector("input, button")?.focus();
  }

  // What the node does where the algorithm leaves it a choice: somebody says it, or it is drawn.
  behaviour(node) {
    const { run } = this.page;
    const words = ["drawn", ...run.setup.choices];
    const select = element("select", { id: "ask-behaviour", onchange: () => this.do({ do: "behaviour", node, behaviour: select.value }) }, ...words.map((word) => element("option", { value: word, text: word })));
    select.value = run.setup.choices[run.about.driven.behaviours[node]] ?? "drawn";
    return select;
  }

  // -- beside it ------------------------------------------------------------------------------

  shows(snapshot, step) {
    const { page } = this;
    if (page.tab !== "drive") return;
    const { run } = page;
    const pane = $("pane-drive");
    const now = step === run.steps || !run.about.riddle; // a riddle is left by a button
    const parts = [];
    if (this.error) parts.push(element("p", { id: "action-refused", class: "wrong", role: "alert", text: this.error }));
    if (run.about.riddle) parts.push(...this.riddle.parts(now));
    else parts.push(element("h3", { text: "another run" }), this.choice ??= this.choices());
    const first = new Set();
    const way = [...snapshot.flying.values()].map((line) => {
      const lane = `${line.from}-${line.to}`;
      const free = !first.has(lane) || !run.about.driven.fifo;
      first.add(lane);
      return element("button", { type: "button", "data-key": line.id, disabled: !now || !free, title: described(line), onclick: () => this.do({ do: "deliver", id: line.id }) },
        element("span", { class: line.tokens ? "chip token" : line.permits ? "chip inside" : "chip", text: line.message }),
        element("span", { text: `${run.called(line.from)} → ${run.called(line.to)}` }));
    });
    parts.push(element("h3", { text: `in flight (${way.length})` }));
    const auto = element("input", { type: "checkbox", id: "auto", onchange: (event) => { this.auto = event.target.checked; } });
    auto.checked = this.auto;
    parts.push(element("div", { class: "row", "data-key": "deliver" },
      element("button", { type: "button", id: "deliver-next", class: "primary", disabled: !now || !way.length, text: "Deliver next", onclick: () => this.do({ do: "next" }) }),
      element("button", { type: "button", id: "deliver-all", disabled: !now || !way.length, text: "All", onclick: () => this.do({ do: "all" }) }),
      element("button", { type: "button", id: "undo", disabled: !run.about.driven.actions, text: "Undo", onclick: () => this.do({ do: "undo" }) }),
      element("label", { class: "check" }, auto, "by itself")));
    if (!run.about.riddle) parts.push(this.chance(now));
    if (run.about.driven.members) parts.push(element("div", { class: "row", "data-key": "wait" }, element("button", { type: "button", id: "wait", disabled: !now, text: "Wait a quarter of a lease", onclick: () => this.do({ do: "wait" }) })));
    if (step < run.steps) parts.push(element("div", { class: "row", "data-key": "earlier" }, element("span", { class: "muted", text: "You see an earlier step. What you do here begins another branch." }), element("button", { type: "button", text: "To the last step", onclick: () => page.go(run.steps) }), element("button", { type: "button", id: "leave-run", text: "Another branch", onclick: () => page.branches.leave(step) })));
    if (way.length) parts.push(element("div", { class: "messages", "data-key": "messages" }, ...way.slice(0, 60)));
    else parts.push(element("p", { class: "muted", text: snapshot.clients.size ? "No message is in flight." : "Click a node to let it ask for permits." }));
    const inside = snapshot.inside();
    if (inside.length) {
      parts.push(element("h3", { text: "inside" }));
      parts.push(element("div", { class: "messages", "data-key": "inside" }, ...inside.map((client, place) => element("button", { type: "button", "data-key": client.number, disabled: !now, onclick: () => this.do({ do: "leave", node: client.node, nth: inside.slice(0, place + 1).filter((other) => other.node === client.node).length }) },
        element("span", { class: "chip inside", text: String(client.want) }), element("span", { text: `node ${run.called(client.node)} leaves` })))));
    }
    if (!run.about.riddle) parts.push(...this.others(snapshot));
    parts.push(...page.branches.parts());
    parts.push(element("h3", { text: "what you can do" }));
    const can = [run.about.riddle ? "Click a node: it makes one of its requests, or leaves." : "Click a node: it asks, changes the priority of its request, releases a part, or leaves.", "Click a message: it arrives now."];
    if (run.about.driven.changing) can.push("Click a link: it fails. Click a dotted one: it forms again.");
    if (run.about.driven.range) can.push(run.about.driven.changing ? "Drag a node: its links follow its radio range." : "Drag a node: this algorithm is for fixed networks, links stay.");
    if (run.about.driven.members) can.push("Click a node: it crashes, or restarts. Wait: timers fire, and everything arrives. The first epoch takes two leases and more.");
    if (run.setup.choices) can.push(`Click a node and choose what it does (${run.setup.choices.join(" or ")}); else it is drawn.`);
    can.push("← and → look back; Undo takes the last step back.");
    parts.push(element("ul", { class: "effects" }, ...can.map((text) => element("li", { text }))));
    redraw(pane, ...parts);
  }

  // Every other step that is possible now: requests, changes of links, crashes.
  others(snapshot) {
    const { page } = this;
    const { run } = page;
    const { changing, members } = run.about.driven;
    const busy = new Set([...snapshot.clients.values()].map((client) => client.node));
    const does = (text, action) => element("button", { type: "button", "data-key": text, text, onclick: () => this.do(action) });
    const steps = [];
    for (let node = 0; node < run.size; node += 1) {
      const gone = snapshot.gone.has(node);
      if (!busy.has(node) && !gone) steps.push(does(`${run.called(node)} asks`, { do: "ask", node, want: 1, priority: 0 }));
      if (members) steps.push(does(`${run.called(node)} ${gone ? "restarts" : "crashes"}`, { do: gone ? "restart" : "crash", node }));
    }
    if (changing) {
      for (const link of run.links) {
        const [one, other] = link.split("-").map(Number);
        const up = snapshot.links.has(link);
        steps.push(does(`${run.called(one)}–${run.called(other)} ${up ? "fails" : "forms"}`, { do: up ? "cut" : "join", one, other }));
      }
    }
    const head = element("button", { type: "button", class: "quiet", id: "all-steps", "aria-expanded": String(Boolean(this.all)), text: `${this.all ? "▾" : "▸"} all other next steps (${steps.length})`, onclick: () => { this.all = !this.all; page.refresh(); } });
    return [element("div", { class: "row", "data-key": "all" }, head), ...(this.all ? [element("div", { class: "steps", "data-key": "steps" }, ...steps)] : [])];
  }

  // What is left to chance: after the same actions in the same run it is the same again.
  chance(now) {
    const draws = (id, text, verb) => element("button", { type: "button", id, disabled: !now, text, onclick: () => this.do({ do: verb }) });
    const buttons = [draws("random-request", "Random request", "random request")];
    if (this.page.run.about.driven.changing) buttons.push(draws("random-link", "Random link change", "random link"));
    return element("div", { class: "row", "data-key": "chance" }, ...buttons);
  }

  // The form for another run. It is made once: what is chosen in it stays.
  choices() {
    const { chosen, offered } = this;
    const set = (key, number) => (event) => { chosen[key] = number ? Number(event.target.value) : event.target.value; };
    const nodes = element("input", { id: "try-nodes", type: "number", min: "2", max: "40", value: String(chosen.nodes), onchange: set("nodes", true) });
    const permits = element("input", { id: "try-permits", type: "number", min: "1", max: "24", onchange: set("permits", true) });
    const topology = element("select", { id: "try-topology", onchange: set("topology") }, ...offered.topologies.map((name) => element("option", { value: name, text: NAMES[name] ?? name })));
    const note = element("p", { id: "try-note", class: "small" });
    const members = element("input", { type: "checkbox", id: "try-members" });
    const limits = () => { // what this algorithm leaves no choice of stands there, and cannot be changed
      const { mutex, complete, token } = offered.algorithms.find((entry) => entry.name === chosen.algorithm);
      permits.disabled = mutex;
      permits.value = String(mutex ? 1 : chosen.permits);
      topology.disabled = complete;
      topology.value = complete ? "complete" : chosen.topology;
      members.disabled = !token;
      members.checked = token && chosen.members > 0;
      note.textContent = [mutex ? "It is for one permit (k = 1)." : "", complete ? "It is for complete networks." : ""].filter(Boolean).join(" ");
    };
    const algorithm = element("select", { id: "try-algorithm", onchange: (event) => { chosen.algorithm = event.target.value; limits(); } }, ...offered.algorithms.map((entry) => element("option", { value: entry.name, text: entry.name, title: entry.title })));
    algorithm.value = chosen.algorithm;
    limits();
    members.addEventListener("change", () => { chosen.members = members.checked ? 1 : 0; });
    return element("div", { class: "fields choice", "data-key": "choice" },
      element("label", { class: "wide" }, "algorithm", algorithm),
      element("label", { class: "wide" }, "topology", topology),
      element("label", {}, "nodes", nodes),
      element("label", {}, "permits (k)", permits),
      element("button", { type: "button", id: "try-start", class: "primary wide", text: "Start", onclick: () => this.start() }),
      element("label", { class: "check" }, members, "all are members: nodes may crash"),
      note);
  }
}
