// Runs that left one another: a step of any run can be left for another step, and none is lost.

import { post } from "./run.js";
import { element } from "./side.js";

export class Branches {
  constructor(page) {
    this.page = page;
    this.list = []; // { name, from, step, steps, made }, the first one first
    this.error = "";
  }

  // A run was opened: one from elsewhere begins anew.
  opened(run, made) {
    this.error = "";
    const known = this.list.find((one) => one.name === run.name);
    if (!known) this.list = [{ name: run.name, from: "", step: 0, made }];
  }

  // Go on by hand from this step; what is there stays as another branch.
  async leave(step) {
    const { page } = this;
    const { run, made } = page;
    const known = this.list.find((one) => one.name === run.name);
    known.steps = run.steps;
    try {
      const { run: name } = await post("/api/runs", { fork: run.name, step });
      const from = made ?? named(run.name);
      const way = from ? { drive: { from: structuredClone(from), step, actions: [] } } : null;
      this.list.push({ name, from: run.name, step, made: way });
      await page.open(name, step, way);
      await page.go(page.run.steps);
      return true;
    } catch (error) {
      this.error = error.message;
      page.refresh();
      return false;
    }
  }

  // What is said of them beside the run.
  parts() {
    const { page, list, error } = this;
    const parts = error ? [element("p", { class: "wrong", role: "alert", "data-key": "left", text: error })] : [];
    if (list.length < 2) return parts;
    const steps = (count) => (count === 1 ? "1 step" : `${count} steps`);
    const rows = list.map((one, place) => {
      const here = one.name === page.run.name;
      const before = list.findIndex((other) => other.name === one.from);
      const text = place ? `leaves ${before ? `branch ${before}` : "the run"} after step ${one.step}` : "the run as it was";
      return element("button", { type: "button", "data-key": one.name, "aria-pressed": String(here), onclick: () => this.show(one) },
        element("span", { class: "chip", text: place ? String(place) : "●" }),
        element("span", { text: `${text} (${steps(here ? page.run.steps : one.steps)})` }));
    });
    return [...parts, element("h3", { "data-key": "branches-title", text: "branches" }), element("div", { class: "messages", "data-key": "branches" }, ...rows)];
  }

  async show(one) {
    const { page } = this;
    const known = this.list.find((other) => other.name === page.run.name);
    if (known) known.steps = page.run.steps;
    await page.open(one.name, page.step, one.made);
  }
}

// An entry of the menu, whose run has its name.
function named(name) {
  const [kind, entry, algorithm] = name.split(":");
  return entry && ["scenario", "mutant", "study"].includes(kind) ? { menu: { kind, name: entry, algorithm } } : null;
}
