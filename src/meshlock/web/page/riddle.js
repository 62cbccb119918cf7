// Beside a riddle that is being driven: what may happen, a hint, the solution, and the verdict.

import { ask, post } from "./run.js";
import { element } from "./side.js";

export class Riddle {
  constructor(driving) {
    this.driving = driving;
    this.run = "";
    this.said = "";
    this.solution = null;
  }

  // For the pane; `now` is false while somebody looks at the past.
  parts(now) {
    const { page } = this.driving;
    const { run } = page;
    const { riddle } = run.about;
    if (this.run !== run.name) Object.assign(this, { run: run.name, said: "", solution: null, judged: -1 });
    if (riddle.found && this.judged !== run.steps) this.verdict();
    if (!riddle.found && this.judged >= 0) Object.assign(this, { said: "", judged: -1 });
    const parts = [
      element("h3", { text: `riddle ${riddle.number}` }),
      element("p", { text: `This ${riddle.algorithm} is broken. Find a schedule in which a property is violated.` }),
      element("div", { class: "messages", "data-key": "requests" }, ...this.requests(now), ...this.change(now)),
      element("div", { class: "row", "data-key": "help" },
        element("button", { type: "button", id: "hint", text: "Hint", onclick: () => this.tells(`${run.path}/hint`) }),
        element("button", { type: "button", id: "solution", text: "Solution", onclick: () => this.solve() })),
    ];
    if (this.said) parts.push(element("p", { id: "riddle-says", role: "status", class: riddle.found ? "found" : "", text: this.said }));
    if (this.solution) parts.push(element("p", { id: "mistake", text: this.solution.mistake }), element("div", { class: "story", "data-key": "story", text: this.solution.story.join("\n") }));
    return parts;
  }

  // The requests that may be made, each as often as it is listed; of one node, or of all.
  requests(now, node = -1) {
    const { riddle } = this.driving.page.run.about;
    return riddle.requests.map((request) => ({ ...request, ...read(request.text) })).filter((request) => node < 0 || request.node === node).map((request) =>
      element("button", { type: "button", "data-key": request.text, disabled: !now || !request.left || riddle.found, onclick: () => this.driving.do({ do: "ask", node: request.node, want: request.want, priority: request.priority }) },
        element("span", { class: "chip", text: request.left ? `${request.left}×` : "done" }),
        element("span", { text: `node ${request.node} asks for ${request.want === 1 ? "1 permit" : `${request.want} permits`}, priority ${request.priority}` })));
  }

  change(now) {
    const { riddle } = this.driving.page.run.about;
    const next = /link (up|down) (\d+)-(\d+)/.exec(riddle.changes[0] ?? "");
    if (!next) return [];
    const [, way, one, other] = next;
    return [element("button", { type: "button", id: "riddle-link", disabled: !now || riddle.found, onclick: () => this.driving.do({ do: way === "up" ? "join" : "cut", one: Number(one), other: Number(other) }) },
      element("span", { class: "chip", text: `${riddle.changes.length}×` }),
      element("span", { text: `the link ${one}-${other} ${way === "up" ? "forms" : "fails"}` }))];
  }

  async tells(path) {
    try {
      this.said = (await ask(path)).says;
    } catch (error) {
      this.said = error.message;
    }
    this.driving.page.refresh();
  }

  verdict() {
    const { run } = this.driving.page;
    this.judged = run.steps;
    this.said = "Found. The checker looks for a shorter way …";
    this.tells(`${run.path}/verdict`);
    run.named(); // its code is no secret any more
  }

  async solve() {
    const { page } = this.driving;
    try {
      this.solution = await post(`${page.run.path}/solution`, {});
      await page.run.named();
    } catch (error) {
      this.said = error.message;
    }
    page.refresh();
  }
}

function read(text) {
  const [, node, want, priority] = /request (\d+) want (\d+) priority (-?\d+)/.exec(text);
  return { node: Number(node), want: Number(want), priority: Number(priority) };
}
