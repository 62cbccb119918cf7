// Two runs of the same schedule, side by side, stepping together.

import { Run, ask, post } from "./run.js";
import { Stage } from "./stage.js";
import { theme } from "./theme.js";
import { type } from "./type.js";
import { words } from "./words.js";
import { element, permitsBar } from "./side.js";

const $ = (id) => document.getElementById(id);
const PACE = 2; // steps per second

class Side {
  constructor(place) {
    this.place = place;
    this.box = $(`side-${place}`);
    this.stage = new Stage(this.box.querySelector("canvas"), { head: 0, margin: 16 });
    this.run = null;
  }

  async open(name, remarks) {
    this.run = await Run.open(name);
    const loads = [];
    for (let number = 1; number <= this.run.number(this.run.steps); number += 1) loads.push(this.run.load(number));
    await Promise.all(loads);
    this.stage.show(this.run);
    this.entries = []; // who enters, in order, and at which step; messages sent until each step
    this.sent = [0];
    for (let step = 1; step <= this.run.steps; step += 1) {
      const lines = this.run.lines(step);
      for (const line of lines) if (line.event === "enter") this.entries.push({ step, node: line.node });
      this.sent.push(this.sent[step - 1] + lines.filter((line) => line.event === "send").length);
    }
    this.box.querySelector("h2").textContent = $(`name-${this.place}`).textContent = this.run.setup.algorithm;
    this.box.querySelector(".remark").textContent = remarks.length ? `Left out, since it cannot happen here: ${remarks.join(" ")}` : "";
  }

  // What can be said of it after this step, a value to a line.
  facts(step) {
    const { run } = this;
    const snapshot = run.at(step);
    const named = (nodes) => (nodes.length ? nodes.map((node) => run.called(node)).join(", ") : "nobody");
    const bad = run.about.violated.filter((found) => found.step <= step).map((found) => found.property);
    return {
      "entered so far": named(this.entries.filter((entry) => entry.step <= step).map((entry) => entry.node)),
      inside: named(snapshot.inside().map((client) => client.node)),
      waiting: named(snapshot.queue().map((client) => client.node)),
      "has the token": named([...snapshot.tokens.keys()]),
      "messages sent": String(this.sent[step]),
      "on their way": String(snapshot.flying.size),
      violated: bad.length ? bad.join(", ") : "nothing",
    };
  }

  // What each node is doing, to be compared with the other side.
  states(step) {
    const snapshot = this.run.at(step);
    return Array.from({ length: this.run.size }, (_, node) => {
      const here = [...snapshot.clients.values()].filter((client) => client.node === node);
      return `${here.map((client) => (client.entered >= 0 ? "inside" : "waits")).sort()} ${snapshot.tokens.has(node)}`;
    });
  }

  draw(step, moved, differing) {
    const { run, box, stage } = this;
    const snapshot = run.at(step);
    stage.snapshot = snapshot;
    stage.marked = differing;
    stage.draw(step);
    permitsBar(box.querySelector(".permits"), run, snapshot);
    const cause = run.lines(step)[0];
    const said = cause ? words(cause, (node) => run.called(node), true) + run.chosen(cause) : "The start";
    box.querySelector(".cause").textContent = moved || !step ? said : "waits for the other side";
    box.classList.toggle("waits", !moved && step > 0);
    return said;
  }
}

class Compare {
  constructor() {
    this.sides = [new Side(0), new Side(1)];
    this.rows = null;
    this.at = 0;
    this.shown = -1;
    this.playing = null;
    const redraw = () => {
      for (const side of this.sides) side.stage.recolour();
      this.draw();
    };
    theme($("theme"), redraw);
    const size = type(redraw);
    $("smaller").addEventListener("click", () => size.by(-1));
    $("larger").addEventListener("click", () => size.by(1));
    $("choice").addEventListener("submit", (event) => { event.preventDefault(); this.compare(); });
    $("schedule").addEventListener("change", () => this.offers());
    $("back").addEventListener("click", () => this.go(this.at - 1));
    $("forward").addEventListener("click", () => this.go(this.at + 1));
    $("differ").addEventListener("click", () => this.next());
    $("play").addEventListener("click", () => this.play());
    $("scrub").addEventListener("input", () => this.go(Number($("scrub").value)));
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input:not(.scrub), select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const doing = { ArrowRight: () => this.go(this.at + (event.shiftKey ? 10 : 1)), ArrowLeft: () => this.go(this.at - (event.shiftKey ? 10 : 1)), Home: () => this.go(0), End: () => this.go(this.rows.length - 1), n: () => this.next(), "<": () => size.by(-1), ">": () => size.by(1), " ": () => this.play() }[event.key];
      if (!doing || !this.rows || (event.key === " " && event.target.closest("button"))) return;
      event.preventDefault();
      doing();
    });
    const sized = new ResizeObserver(() => this.draw());
    for (const side of this.sides) sized.observe(side.stage.canvas);
  }

  async start() {
    const offered = await ask("/api/compare");
    const options = (names) => names.map((name) => element("option", { value: name, text: name }));
    for (const side of ["left", "right"]) $(side).replaceChildren(...options(offered.algorithms));
    $("topology").replaceChildren(...options(offered.topologies));
    $("schedule").replaceChildren(element("option", { value: "", text: "same seed and workload" }), ...offered.scenarios.map((script) => element("option", { value: script.name, text: `${script.name}: ${script.title}` })));
    const asked = new URLSearchParams(location.search);
    $("left").value = asked.get("left") ?? "jiang-printed";
    $("right").value = asked.get("right") ?? "jiang";
    $("schedule").value = asked.has("left") ? asked.get("scenario") ?? "" : "J1";
    $("topology").value = asked.get("topology") ?? "tree";
    for (const [id, key] of [["nodes", "nodes"], ["permits-of", "permits"], ["requests", "requests"], ["seed", "seed"]]) if (asked.has(key)) $(id).value = asked.get(key);
    this.offers();
    await this.compare(Number(/at=(\d+)/.exec(location.hash)?.[1]) || 0);
  }

  offers() {
    $("workload").hidden = $("schedule").value !== "";
  }

  body() {
    const body = { left: $("left").value, right: $("right").value };
    if ($("schedule").value) return { ...body, scenario: $("schedule").value };
    return { ...body, topology: $("topology").value, nodes: Number($("nodes").value), permits: Number($("permits-of").value), requests: Number($("requests").value), seed: Number($("seed").value) };
  }

  async compare(at = 0) {
    this.pause();
    try {
      const body = this.body();
      const { title, runs, rows, remarks } = await post("/api/compare", body);
      await Promise.all(this.sides.map((side, place) => side.open(runs[place], remarks[place])));
      this.rows = rows;
      this.apart = rows.map((_, place) => this.differing(place));
      $("wrong").hidden = true;
      $("subtitle").textContent = title;
      $("scrub").max = String(rows.length - 1);
      history.replaceState(null, "", `?${new URLSearchParams(body)}`);
      this.go(at);
    } catch (error) {
      $("wrong").hidden = false;
      $("wrong").textContent = error.message;
    }
  }

  // Nodes that do different things on the two sides here.
  differing(place) {
    const [left, right] = this.sides.map((side, number) => side.states(this.rows[place][number]));
    return left.flatMap((state, node) => (state === right[node] ? [] : [node]));
  }

  next() {
    const place = this.apart.findIndex((nodes, row) => row > this.at && nodes.length && String(nodes) !== String(this.apart[row - 1]));
    if (place > 0) this.go(place);
    else $("says").textContent = "No more differences.";
  }

  go(at) {
    if (!this.rows) return;
    this.at = Math.min(Math.max(at, 0), this.rows.length - 1);
    this.draw();
    history.replaceState(null, "", `${location.search}#at=${this.at}`);
  }

  play() {
    if (this.playing) return this.pause();
    if (this.at >= this.rows.length - 1) this.go(0);
    $("play").classList.add("playing");
    $("play").setAttribute("aria-label", "Pause");
    this.playing = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.rows.length - 1) this.pause();
    }, 1000 / PACE);
    return undefined;
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
    $("play").classList.remove("playing");
    $("play").setAttribute("aria-label", "Play");
  }

  draw() {
    if (!this.rows) return;
    const { at, rows, sides } = this;
    const row = rows[at];
    const before = rows[Math.max(at - 1, 0)];
    const said = sides.map((side, place) => side.draw(row[place], row[place] !== before[place], this.apart[at]));
    const [left, right] = sides.map((side, place) => side.facts(row[place]));
    document.querySelector("#differences tbody").replaceChildren(...Object.keys(left).map((name) => {
      const cells = [left[name], right[name]].map((text) => element("td", { text, class: name === "violated" && text !== "nothing" ? "bad" : "" }));
      return element("tr", { class: left[name] === right[name] ? "" : "differs" }, element("td", { text: name }), ...cells);
    }));
    $("scrub").value = String(at);
    $("where").textContent = `${at} of ${rows.length - 1}: ${row[2]}`;
    $("back").disabled = at === 0;
    $("forward").disabled = at === rows.length - 1;
    $("says").textContent = `${row[2]}. ${said.join("; ")}`;
    this.shown = at;
  }
}

const page = new Compare();
window.meshlock = page; // for those who want to look under the bonnet, and for the tests
page.start().catch((error) => {
  $("wrong").hidden = false;
  $("wrong").textContent = error.message;
});
