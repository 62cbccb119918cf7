// A run as the server knows it: windows of steps are fetched when they are needed.

import { Snapshot, pair } from "./model.js";
import { alone } from "./alone.js";
import { call } from "./server.js";
import { total, value } from "./words.js";

export async function ask(path, options) {
  if (alone) return alone(path);
  const answer = await call(path, options);
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.why ?? `${answer.status}`), { place: body });
  return body;
}

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

const KEPT = 24;
const MOST_NODES = 20_000;
const MOST_LINKS = 20_000;

export class Run {
  constructor(name, about) {
    this.name = name;
    this.path = `/api/runs/${encodeURIComponent(name)}`;
    this.windows = new Map();
    this.coming = new Map();
    this.renew(about);
    const { setup } = about;
    this.size = Math.min(setup.nodes, MOST_NODES); // as many as can be drawn
    this.permits = total(setup.permits);
    this.links = [];
    if (setup.links === "complete") {
      if (this.size * this.size < 2 * MOST_LINKS) {
        for (let one = 0; one < this.size; one += 1) for (let other = one + 1; other < this.size; other += 1) this.links.push(`${one}-${other}`);
      }
    } else if (Array.isArray(setup.links)) {
      this.links = setup.links.map(([one, other]) => pair(one, other));
    }
    this.ran = new Map(); // step: the methods that ran in it, as far as asked for
    this.snapshot = null; // the one at hand
    this.changed = () => {}; // is called when more is here
  }

  static async open(name) {
    const run = new Run(name, await ask(`/api/runs/${encodeURIComponent(name)}`));
    await run.load(0);
    return run;
  }

  renew(about) {
    this.about = about;
    this.setup = about.setup;
    this.steps = about.steps;
    this.width = about.window;
  }

  // More has been written: what is known of the last window is old.
  grown(about) {
    const from = Math.floor(Math.max(this.steps - 1, 0) / this.width);
    this.renew(about);
    for (const number of this.windows.keys()) if (number >= from) this.windows.delete(number);
    this.ran.clear();
  }

  called(node) {
    return String(this.setup.names?.[node] ?? node);
  }

  // A variable's value as its algorithm calls it.
  value(name, thing) {
    return this.constants?.[name]?.[thing] ?? value(thing);
  }

  // What was chosen before this step, where the algorithm leaves a choice.
  chosen(line) {
    const name = this.setup.choices?.[line?.choice];
    return name ? `, ${name}` : "";
  }

  number(step) {
    return Math.floor(Math.max(step - 1, 0) / this.width);
  }

  window(step) {
    return this.windows.get(this.number(step));
  }

  async load(number) {
    if (this.windows.has(number)) return this.windows.get(number);
    if (!this.coming.has(number)) {
      this.coming.set(number, ask(`${this.path}/window?number=${number}`).finally(() => this.coming.delete(number)));
    }
    const window = await this.coming.get(number);
    window.arrivals = new Map(window.arrivals);
    window.paths = new Map(window.paths);
    this.windows.delete(number);
    this.windows.set(number, window);
    this.changed();
    while (this.windows.size > KEPT) this.windows.delete(this.windows.keys().next().value);
    return window;
  }

  // Is this step's window here? If not it is sent for.
  ready(step) {
    const number = this.number(step);
    const next = this.number(Math.min(step + 64, this.steps));
    if (!this.windows.has(next)) this.load(next).catch(() => {});
    if (this.windows.has(number)) return true;
    this.load(number).catch(() => {});
    return false;
  }

  lines(step) {
    if (step < 1) return [];
    const window = this.window(step);
    return window?.steps[step - window.first] ?? [];
  }

  // How things are after this step; its window must be here.
  at(step) {
    const here = this.snapshot;
    if (here && here.step === step) return here;
    if (here && here.step + 1 === step && this.window(step)) {
      here.follow(step, this.lines(step));
      return here;
    }
    const window = this.window(step);
    const snapshot = new Snapshot(this.setup, this.links, window.snapshot);
    snapshot.step = window.first - 1;
    for (let number = window.first; number <= step; number += 1) snapshot.follow(number, this.lines(number));
    this.snapshot = snapshot;
    return snapshot;
  }

  // The methods that ran in this step and which of their lines, if that can be found out.
  async watch(step) {
    if (this.ran.has(step)) return;
    this.ran.set(step, []);
    this.ran.set(step, await ask(`${this.path}/ran?step=${step}`));
    this.changed();
  }

  // Learn the sources of its handlers, and what they call their numbers.
  async named() {
    Object.assign(this, await ask(`${this.path}/source`));
    this.ran.clear();
    this.changed();
  }

  forget() {
    this.snapshot = null;
  }

  time(step) {
    const lines = this.lines(step);
    return lines.length ? lines[0].t : 0;
  }

  arrival(step, id) {
    return this.window(step)?.arrivals.get(id) || this.windows.get(this.number(step) - 1)?.arrivals.get(id) || 0;
  }
}
