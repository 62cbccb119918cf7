// The page: opens a run, plays it, and answers to buttons, keys and the pointer.

import { redraw } from "./redraw.js";
import { Run, ask } from "./run.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";
import { alone } from "./alone.js";
import { Branches } from "./branches.js";
import { Driving } from "./driving.js";
import { Editor } from "./editor.js";
import { keys } from "./keys.js";
import { Lesson } from "./lesson.js";
import { Menu } from "./menu.js";
import { packed, unpacked } from "./packed.js";
import { pointer } from "./pointer.js";
import { call, tab as inTab } from "./server.js";
import { theme } from "./theme.js";
import { presenting, type } from "./type.js";
import { kinds, words } from "./words.js";
import { element, eventsPane, nodePane, permitsBar, stepPane, tip, waitingPane } from "./side.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 512];
const TABS = ["drive", "lesson", "step", "waiting", "node", "events", "code"];
const MEANING = {
  safety: "At most k permits may be in use.",
  "one-token": "No step may make or lose a token.",
  conservation: "No step may make or lose a permit.",
  order: "With nothing in flight, the most urgent waiting request must enter next.",
  neighbours: "Messages go only to linked nodes.",
  served: "Every request must be served in the end.",
};
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

export class Page {
  constructor() {
    theme($("theme"), () => this.recolour());
    this.stage = new Stage($("network"));
    this.strip = new Strip($("overview"), $("gantt"), this.stage.colour);
    this.run = null;
    this.position = 0; // in steps; between two of them while something moves
    this.target = null; // where a single step goes
    this.playing = false;
    this.speed = 4;
    this.tab = "step";
    this.shown = null; // what the panes show
    this.dirty = true;
    this.frames = [];
    this.before = 0;
    this.driver = null; // who drives runs, once one has been begun
    this.type = type(() => this.recolour());
    this.menu = new Menu(this);
    this.editor = inTab ? new Editor(this) : null; // a server runs no text of the page
    $("tab-code").hidden = !inTab;
    this.branches = new Branches(this);
    this.lesson = new Lesson(this);
    this.made = null; // how the run at hand was made, if no entry of the menu makes it
    this.word = ""; // the same for addresses
    this.controls();
    pointer(this);
    keys(this);
    requestAnimationFrame((now) => this.frame(now));
  }

  // -- what is shown ------------------------------------------------------------------

  // The driver of the run at hand, if it can be driven.
  get driving() {
    return this.run?.about.driven ? this.driver : null;
  }

  // `made` says how to make this run again, if its name does not.
  async open(name, step = 0, made = null) {
    const run = await Run.open(name);
    this.made = made;
    await this.remember();
    const { driven } = run.about;
    if (driven) this.driver ??= new Driving(this, this.offered);
    this.run = run;
    this.branches.opened(run, made);
    this.linked = null;
    $("ask").hidden = true;
    $("tab-drive").hidden = !driven;
    $("tab-lesson").hidden = !run.about.lesson;
    if (run.about.lesson) this.lesson.opened(run, step);
    if (run.about.lesson) this.choose("lesson");
    else if (this.tab === "lesson") this.choose("step");
    if (driven) this.choose("drive");
    else if (this.tab === "drive") this.choose("step");
    if (this.tab === "code" && !made?.check) this.choose("step");
    this.stage.selected = -1;
    this.stage.range = driven?.range ?? 0;
    run.changed = () => { this.dirty = true; };
    this.stage.show(run);
    this.strip.show(run);
    this.position = 0;
    this.playing = false;
    this.headline();
    this.kinds();
    this.limits();
    $("pace").value = run.about.bounds && !run.about.driven ? "time" : "steps"; // what moves, moves evenly
    run.named().then(() => this.refresh()).catch(() => {});
    this.course();
    await this.go(step);
  }

  // Begin a run to be driven.
  async drive() {
    this.driver ??= new Driving(this, this.offered);
    await this.driver.start();
  }

  // Whatever the address says: a run that is here, or an entry of the menu, which is made again.
  async follow() {
    const { opened, runs } = this.offered;
    const asked = new URLSearchParams(location.hash.slice(1));
    if (asked.has("made") && !alone) return this.make(await unpacked(asked.get("made")), Number(asked.get("step")) || 0);
    if (asked.has("algorithm")) return this.begin(asked.get("algorithm"));
    const name = asked.get("run") ?? opened;
    const step = Number(asked.get("step")) || 0;
    if (alone || runs.includes(name)) return this.open(name, step);
    const [kind, entry, algorithm] = (name ?? "").split(":");
    if (entry && await this.menu.open({ kind, name: entry, algorithm })) return this.go(step);
    return opened ? this.open(opened) : this.drive();
  }

  headline() {
    const { setup, about } = this.run;
    const { run } = this;
    const bad = about.violated;
    const network = Array.isArray(setup.links) && !setup.links.length ? "" : Array.isArray(setup.links) ? `${setup.links.length} links` : "complete";
    const facts = [setup.algorithm, `${setup.nodes} nodes`, network, `k = ${kinds(setup.permits)}`, run.steps === 1 ? "1 step" : `${run.steps.toLocaleString("en")} steps`];
    if (setup.pool) facts.unshift(`pool ${setup.pool}`);
    if (setup.seed !== undefined) facts.push(`seed ${setup.seed}`);
    if (about.lesson) $("title").textContent = about.lesson.title;
    else if (bad.length) {
      $("title").textContent = `${bad[0].property} is violated`;
      facts.unshift(setup.source === "check" ? "counterexample" : setup.source);
      if (about.riddle) $("title").textContent = `Riddle ${about.riddle.number}: found, ${$("title").textContent}`;
    } else if (about.riddle) $("title").textContent = `Riddle ${about.riddle.number}: this ${about.riddle.algorithm} is broken`;
    else if (about.driven) $("title").textContent = "Try it yourself";
    else $("title").textContent = setup.pool ?? setup.scenario ?? `${setup.algorithm}, ${setup.source === "live" ? "live" : setup.source === "check" ? "a checked run" : "a simulated run"}`;
    $("subtitle").textContent = facts.filter(Boolean).join(" · ") + (about.unjudged ? ` · ${about.unjudged}` : "");
    document.title = `${$("title").textContent} · meshlock`;
    const verdict = $("verdict");
    const round = setup.loop ? [element("span", { class: "meaning", text: `From step ${setup.loop} on it goes round for ever.` }), element("button", { type: "button", text: "once round", onclick: async () => { await this.go(setup.loop - 1); this.play(); } })] : [];
    verdict.hidden = !bad.length;
    redraw(verdict, ...bad.flatMap((found) => [element("span", { text: `${found.property}: ${found.sentence}` }), element("span", { class: "meaning", text: MEANING[found.property] ?? "" }), element("button", { type: "button", text: `step ${found.step}`, onclick: () => this.go(found.step) })]), ...round);
    const many = run.permits > 1;
    const legend = [
      setup.balanced && ["token", "token", ""],
      setup.balanced && many && ["free badge", "free with it", String(setup.permits)],
      ["waiting", "waits", ""],
      ["asked badge", many ? "2 permits, priority 1" : "priority 1", many ? "2×p1" : "p1"],
      ["inside", "inside", ""],
      many && ["held badge", "permits held", "2"],
      ["message", "message", ""],
      many && ["message permits", "with permits", ""],
      ["acts", "acts in this step", ""],
      about.states && ["arrow", "way to the token", ""],
      about.driven?.changing && ["cut", "link that is down", ""],
      (setup.recovery || about.kinds.includes("crash")) && ["gone", "crashed", ""],
    ].filter(Boolean);
    $("legend").replaceChildren(...legend.map(([kind, text, inner]) => element("span", {}, element("i", { class: kind, text: inner }), text)));
    this.stage.foot = undefined; // as high as the legend is now
  }

  kinds() {
    const found = this.run.about.violated.length ? ["violation"] : [];
    const kinds = ["enter", ...found, ...this.run.about.kinds.filter((kind) => kind !== "enter" && kind !== "end").sort()];
    const chosen = $("kind").value;
    redraw($("kind"), ...kinds.map((kind) => element("option", { value: kind, text: kind })));
    if (kinds.includes(chosen)) $("kind").value = chosen;
  }

  limits() {
    $("scrub").max = String(this.run.steps);
    $("step").max = String(this.run.steps);
    $("total").textContent = `of ${this.run.steps.toLocaleString("en")}`;
  }

  course() {
    const { run } = this;
    ask(`${run.path}/overview?parts=${Math.max(100, Math.round($("overview").clientWidth / 2))}`).then((course) => {
      this.strip.course = course;
      this.dirty = true;
    }).catch(() => {});
  }

  // An algorithm to be driven, with its code beside it where that can be changed.
  async begin(algorithm) {
    this.driver ??= new Driving(this, this.offered);
    await this.driver.begin(algorithm);
    await this.editor?.load(algorithm);
  }

  // Make a run that a link holds.
  async make({ check, drive }, step) {
    const edited = check ?? drive.edited;
    if (edited && !this.editor) throw new Error("This link holds an algorithm that somebody changed. Open it in the laboratory of a browser tab: a server runs no code from links.");
    if (edited) await this.editor.load(edited.algorithm, edited.files, edited.setup);
    if (check) {
      this.choose("code");
      if (!await this.editor.check(step) && !this.run) await this.drive();
      return;
    }
    this.driver ??= new Driving(this, this.offered);
    await this.driver.again(drive);
    await this.go(step);
  }

  async remember() {
    this.word = this.made ? await packed(this.made) : "";
    this.linked = null;
  }

  // What leads to this step again: what is made by hand is in the link itself.
  link(step) {
    const { name } = this.run;
    if (this.word) return `#made=${this.word}&step=${step}`;
    return alone || name === this.offered.opened ? `#step=${step}` : `#run=${encodeURIComponent(name)}&step=${step}`;
  }

  // More has happened in this run.
  async grown(about) {
    const { run } = this;
    await this.remember();
    run.grown(about);
    run.forget();
    await run.load(run.number(run.steps));
    this.limits();
    this.headline();
    this.kinds();
    this.course();
  }

  // -- going about ------------------------------------------------------------------------

  get step() {
    return Math.floor(this.position + 1e-9);
  }

  async go(step) {
    if (!this.run) return;
    const to = Math.min(Math.max(Math.round(step) || 0, 0), this.run.steps);
    this.target = null;
    await this.run.load(this.run.number(to));
    this.run.ready(to);
    this.position = to;
    this.refresh();
  }

  async walk(count) {
    this.pause();
    const from = this.target ?? this.step;
    const to = Math.min(Math.max(from + count, 0), this.run.steps);
    if (count === 1 && !still.matches && to > this.position) {
      await this.run.load(this.run.number(to));
      this.target = to;
    } else await this.go(to);
  }

  // Go there, and show what happens on the way.
  async playTo(step) {
    this.pause();
    await this.run.load(this.run.number(step));
    if (still.matches || step <= this.position || step - this.position > 200) await this.go(step);
    else this.target = step;
    this.refresh();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.position = this.step;
    this.refresh();
    this.button();
  }

  play(speed = this.speed) {
    const { steps, setup } = this.run;
    if (!steps) return;
    if (setup.loop && this.step >= steps) this.position = setup.loop - 1; // once more round
    this.speed = speed;
    $("speed").value = String(speed);
    if (this.step >= this.run.steps) this.position = 0;
    this.playing = true;
    this.target = null;
    this.button();
  }

  button() {
    $("play").classList.toggle("playing", this.playing);
    $("play").setAttribute("aria-label", this.playing ? "Pause" : this.run?.steps && this.step >= this.run.steps ? "Play again from the start" : "Play");
  }

  // Violations are few, and known here.
  violation(back) {
    const steps = this.run.about.violated.map((found) => found.step).filter((step) => (back ? step < this.step : step > this.step));
    return steps.length ? (back ? Math.max(...steps) : Math.min(...steps)) : 0;
  }

  async find(back) {
    const asked = new URLSearchParams({ after: this.step, kind: $("kind").value });
    if (back) asked.set("back", "1");
    if (this.tab === "node" && this.stage.selected >= 0) asked.set("node", this.stage.selected);
    const { step } = $("kind").value === "violation" ? { step: this.violation(back) } : await ask(`${this.run.path}/find?${asked}`);
    if (step) {
      this.pause();
      await this.go(step);
    } else $("says").textContent = "No further event of this kind.";
  }

  select(node) {
    this.stage.selected = node;
    if (node >= 0 && this.tab !== "drive") this.choose("node");
    this.refresh();
  }

  // -- drawing ------------------------------------------------------------------------------

  refresh() {
    this.shown = null;
    this.dirty = true;
  }

  frame(now) {
    requestAnimationFrame((later) => this.frame(later));
    const passed = Math.min((now - this.before) / 1000, 0.1);
    this.before = now;
    const { run } = this;
    if (!run) return;
    if (this.playing) {
      const next = $("pace").value === "time" ? this.later(passed) : this.position + passed * this.speed;
      if (run.ready(Math.min(Math.ceil(next), run.steps))) this.position = Math.min(next, run.steps);
      if (this.position >= run.steps) this.pause();
      this.dirty = true;
    } else if (this.target !== null) {
      const pace = still.matches ? Infinity : Math.max(2.8, (this.target - this.position) * (run.about.lesson ? 0.8 : 3));
      this.position = Math.min(this.position + passed * pace, this.target);
      if (this.position >= this.target) {
        this.position = this.target;
        this.target = null;
      }
      this.dirty = true;
    }
    if (!this.dirty) return;
    const step = this.step;
    if (!run.ready(step)) return;
    this.dirty = false;
    const snapshot = run.at(step);
    this.stage.snapshot = snapshot;
    this.stage.draw(still.matches ? step : this.position);
    if (this.pointed) this.looks(this.pointed); // what is under the pointer may be another by now
    const passing = `${Math.round((this.position / Math.max(run.steps, 1)) * $("overview").clientWidth)} ${this.shown}`;
    if (!this.playing || passing !== this.passing) this.strip.overview(this.position);
    this.passing = passing;
    this.strip.gantt(this.position, this.stage.selected);
    this.frames.push([now, this.stage.drawing]);
    if (this.frames.length > 300) this.frames.shift();
    if (this.shown !== step && (!this.playing || this.speed <= 16 || now - (this.panned ?? 0) > 120)) {
      this.panned = now;
      this.shown = step;
      this.panes(snapshot, step);
    }
  }

  // Where the run is after these seconds, if its own time goes evenly: as fast as by steps on average.
  later(passed) {
    const { run } = this;
    const until = this.stage.time(this.position) + (passed * this.speed * run.about.time) / Math.max(run.steps, 1);
    let step = this.step;
    while (step < run.steps && run.ready(step + 1) && run.time(step + 1) <= until) step += 1;
    if (step >= run.steps) return run.steps;
    const from = run.time(step);
    const to = run.time(step + 1);
    return Math.max(this.position, step + (to > from ? Math.min((until - from) / (to - from), 0.999) : 0));
  }

  panes(snapshot, step) {
    const { run } = this;
    permitsBar($("permits"), run, snapshot);
    if (run.about.lesson) $("verdict").hidden = !run.about.violated.some((found) => found.step <= step + 1); // it does not tell the end
    if (this.tab === "lesson") this.lesson.show($("pane-lesson"));
    else if (this.tab === "step") {
      stepPane($("pane-step"), run, snapshot, alone || this.driving ? [] : this.leaving(step));
      this.watch(run, step);
    } else if (this.tab === "code" && run.setup.algorithm === this.editor.made) {
      this.watch(run, step);
      if (run.ran.has(step) || !step) this.editor.lights(run, step);
    }
    else if (this.tab === "waiting") waitingPane($("pane-waiting"), run, snapshot, (node) => this.select(node));
    else if (this.tab === "node") nodePane($("pane-node"), run, snapshot, this.stage.selected, (node) => this.select(node), this.driving);
    else if (this.tab === "events") eventsPane($("pane-events"), run, step, (to) => this.go(to));
    this.driving?.shows(snapshot, step);
    $("deliver-now").hidden = !this.driving;
    $("deliver-now").disabled = !snapshot.flying.size;
    if (document.activeElement !== $("step")) $("step").value = String(step);
    $("scrub").value = String(step);
    $("clock").textContent = `t = ${round(run.time(step))}`;
    $("back").disabled = $("first").disabled = step === 0;
    $("forward").disabled = $("last").disabled = step >= run.steps;
    $("play").disabled = !run.steps;
    this.button();
    const cause = run.lines(step)[0] ?? { event: "end" };
    const said = step ? words(cause, (node) => run.called(node), true) + run.chosen(cause) : "the start";
    $("caption").textContent = run.about.lesson ? this.lesson.said() : step ? `${step}. ${said}${this.effects(run.lines(step))}` : "The start";
    $("network").setAttribute("aria-label", `The network after step ${step}: ${said}; ${snapshot.used()} of ${run.permits} permits in use, ${snapshot.queue().length} waiting`);
    if (!this.playing) {
      $("says").textContent = `Step ${step}: ${said}`;
      if (this.linked !== step) history.replaceState(null, "", this.link(step));
      this.linked = step;
    }
  }

  // Below the step of a run that is played: leave it here.
  leaving(step) {
    const other = step ? null : this.faulty();
    const button = element("button", { type: "button", id: "leave-run", text: "Go on by hand from here", onclick: () => this.branches.leave(step) });
    return [element("div", { class: "row", "data-key": "leave" }, other, button), ...this.branches.parts()];
  }

  // A scenario of an error, played by the algorithm that has it.
  faulty() {
    const [kind, name, algorithm] = this.run.name.split(":");
    const broken = /^J\d/.test(name) ? "jiang-printed" : /^R1[01]/.test(name) ? `jiang/without-${name.slice(0, 3)}` : "";
    if (kind !== "scenario" || !broken || algorithm === broken) return null;
    return element("button", { type: "button", id: "faulty", text: `Play it by ${broken}, whose fault it shows`, onclick: () => this.menu.open({ kind, name, algorithm: broken }) });
  }

  // What came of a step, for a caption.
  effects([, ...lines]) {
    const said = lines.filter((line) => ["send", "enter", "recover"].includes(line.event)).map((line) => words(line, (node) => this.run.called(node), true));
    return said.length ? `, and ${said.slice(0, 3).join(", ")}${said.length > 3 ? ", …" : ""}` : "";
  }

  // Which lines ran in this step is asked for when somebody has the time to look.
  watch(run, step) {
    if (!step || (this.playing && this.speed > 2) || run.ran.has(step)) return;
    run.watch(step).then(() => { if (this.step === step) this.refresh(); }).catch(() => {});
  }

  // -- controls -------------------------------------------------------------------------------

  recolour() {
    if (!this.stage || !this.strip) return;
    this.stage.recolour();
    this.strip.colour = this.stage.colour;
    this.refresh();
  }

  choose(tab) {
    this.tab = tab;
    for (const name of TABS) {
      $(`tab-${name}`).setAttribute("aria-selected", String(name === tab));
      $(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
      $(`pane-${name}`).hidden = name !== tab;
    }
    document.documentElement.classList.toggle("editing", tab === "code");
    document.documentElement.classList.toggle("telling", tab === "lesson");
    if (tab === "code" && !this.editor.algorithm) this.editor.load(this.codeOf()).catch(() => {});
    this.refresh();
  }

  // The algorithm whose code is shown first.
  codeOf() {
    const name = String(this.run?.setup.algorithm ?? "").split("/")[0];
    return this.offered.algorithms.some((entry) => entry.name === name) ? name : "raymond";
  }

  controls() {
    $("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    $("back").addEventListener("click", () => this.walk(-1));
    $("forward").addEventListener("click", () => this.walk(1));
    $("first").addEventListener("click", () => { this.pause(); this.go(0); });
    $("last").addEventListener("click", () => { this.pause(); this.go(this.run.steps); });
    $("speed").append(...SPEEDS.map((speed) => element("option", { value: speed, text: speed < 1 ? "1 in 2 s" : `${speed} per s` })));
    $("speed").value = String(this.speed);
    $("speed").addEventListener("change", () => { this.speed = Number($("speed").value); });
    $("step").addEventListener("change", () => { this.pause(); this.go(Number($("step").value)); });
    $("step").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "Escape") setTimeout(() => $("network").focus()); });
    $("scrub").addEventListener("input", () => { this.pause(); this.go(Number($("scrub").value)); });
    $("find-next").addEventListener("click", () => this.find(false));
    $("find-back").addEventListener("click", () => this.find(true));
    $("share").addEventListener("click", async () => {
      const link = new URL(this.link(this.step), location.href).href;
      try {
        await navigator.clipboard.writeText(link);
        $("share").textContent = "Copied";
      } catch {
        history.replaceState(null, "", this.link(this.step));
        $("share").textContent = "It is in the address bar";
      }
      setTimeout(() => { $("share").textContent = "Copy link"; }, 1600);
    });
    $("smaller").addEventListener("click", () => this.type.by(-1));
    $("larger").addEventListener("click", () => this.type.by(1));
    $("lecture").addEventListener("click", () => this.present(true));
    $("lecture-end").addEventListener("click", () => this.present(false));
    $("try-new").addEventListener("click", () => {
      if (!this.driving || this.run.about.riddle) this.drive();
      else {
        this.choose("drive");
        setTimeout(() => $("try-algorithm")?.focus(), 200);
      }
    });
    $("help-open").addEventListener("click", () => $("help").showModal());
    $("diagram-open").addEventListener("click", () => this.diagram());
    $("diagram-image").addEventListener("click", (event) => { // to the step of this row
      const numbers = [...$("diagram-image").querySelectorAll('text[x="12"]')].filter((one) => /^\d+$/.test(one.textContent));
      const above = numbers.filter((one) => one.getBoundingClientRect().top - 6 <= event.clientY).at(-1);
      if (!above) return;
      $("diagram").close();
      this.pause();
      this.go(Number(above.textContent));
    });
    for (const id of ["diagram-first", "diagram-last"]) $(id).addEventListener("change", () => this.drawDiagram());
    const tabs = TABS.map((name) => $(`tab-${name}`));
    tabs.forEach((tab, place) => {
      tab.addEventListener("click", () => this.choose(TABS[place]));
      tab.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by) return;
        event.stopPropagation();
        let to = place;
        do to = (to + by + TABS.length) % TABS.length; while (tabs[to].hidden);
        this.choose(TABS[to]);
        tabs[to].focus();
      });
    });
    window.addEventListener("resize", () => { this.dirty = true; });
    window.addEventListener("hashchange", () => {
      const asked = new URLSearchParams(location.hash.slice(1));
      if (asked.has("made") ? asked.get("made") !== this.word : asked.has("algorithm") || ((asked.get("run") ?? this.offered.opened ?? "") !== this.run.name && !alone)) this.follow();
      else if (Number(asked.get("step")) !== this.step) this.go(Number(asked.get("step")));
    });
    new ResizeObserver(() => { this.dirty = true; }).observe($("stage"));
  }

  // Large type, the network and what happens, and nothing else; keys do the rest.
  present(on) {
    this.type.present(on);
    const full = on ? document.documentElement.requestFullscreen?.() : document.fullscreenElement && document.exitFullscreen();
    full?.catch?.(() => {}); // not every browser lets a page do that
    (on ? $("network") : $("lecture")).focus();
  }

  diagram() {
    if (alone) return;
    const span = this.strip.span ?? [Math.max(1, this.step - 24), Math.min(this.run.steps, this.step + 15)];
    $("diagram-first").value = String(span[0]);
    $("diagram-last").value = String(span[1]);
    this.drawDiagram();
    $("diagram").showModal();
  }

  async drawDiagram() {
    const asked = new URLSearchParams({ first: $("diagram-first").value || 1, last: $("diagram-last").value || 1 });
    const place = `${this.run.path}/sequence.svg?${asked}`;
    const text = await (await call(place)).text();
    const drawn = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    $("diagram-image").replaceChildren(document.importNode(drawn, true));
    $("diagram-svg").href = inTab ? URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })) : place;
  }

  faster(by) {
    const place = Math.min(Math.max(SPEEDS.indexOf(this.speed) + by, 0), SPEEDS.length - 1);
    this.speed = SPEEDS[place];
    $("speed").value = String(this.speed);
  }

  looks(at) {
    const { stage } = this;
    const over = stage.under(at.x, at.y);
    const useful = over && (over.node >= 0 || over.message !== undefined || this.driving) ? over : null;
    $("network").classList.toggle("over", Boolean(useful));
    if (JSON.stringify(useful) !== JSON.stringify(stage.over)) {
      stage.over = useful;
      this.dirty = true;
    }
    this.hover(at, useful);
  }

  hover(at, over) {
    const box = $("tip");
    const node = over?.node ?? -1;
    const flying = over?.message !== undefined ? this.stage.snapshot?.flying.get(over.message) : null;
    let text = "";
    if (node >= 0 && this.stage.snapshot) text = tip(this.run, this.stage.snapshot, node);
    else if (flying) text = `${words({ ...flying, event: "send" }, (n) => this.run.called(n))}${this.driving ? "\nclick: deliver it now" : ""}`;
    else if (over?.link && this.driving && this.run.about.driven.changing) text = over.gone ? "click: the link forms again" : "click: cut this link";
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const wide = $("stage").clientWidth;
    box.style.left = `${Math.max(8, Math.min(at.x + 14, wide - box.offsetWidth - 8))}px`;
    box.style.top = `${at.y + 14 + box.offsetHeight < $("stage").clientHeight ? at.y + 14 : Math.max(8, at.y - 14 - box.offsetHeight)}px`;
  }
}

const round = (time) => (Math.abs(time) >= 1000 ? time.toFixed(1) : String(Math.round(time * 1000) / 1000));

const page = new Page();
window.meshlock = page; // for those who want to look under the bonnet, and for the tests
ask("/api/runs").then(async (offered) => {
  page.offered = offered;
  await page.follow();
  if (!page.run) await page.drive();
}).catch((error) => {
  $("title").textContent = "This run cannot be shown";
  $("subtitle").textContent = error.message;
});
