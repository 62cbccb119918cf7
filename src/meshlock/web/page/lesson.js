// A lesson: text beside the picture, a part at a time, with questions, and a riddle at the end.

import { element } from "./side.js";

const $ = (id) => document.getElementById(id);
const PIECE = /\*\*(.+?)\*\*|\*(.+?)\*|`(.+?)`|\[(.+?)\]\(riddle:(\d+)\)/g;

export class Lesson {
  constructor(page) {
    this.page = page;
    this.run = "";
    this.place = 0;
    this.answers = new Map(); // part: which answers were clicked
  }

  // The lesson of the run at hand, if it is one.
  get lesson() {
    return this.page.run?.about.lesson;
  }

  opened(run, step) {
    this.run = run.name;
    this.answers.clear();
    this.place = Math.max(0, this.lesson.parts.findLastIndex(([at]) => at <= step));
    if (step === 0) this.place = 0;
  }

  // To the part before or after; what lies between is played.
  async turn(by) {
    const { page, lesson } = this;
    const to = Math.min(Math.max(this.place + by, 0), lesson.parts.length - 1);
    if (to === this.place) return;
    this.place = to;
    page.choose("lesson");
    await page.playTo(lesson.parts[to][0]);
  }

  // What is said now, without marks, for a presentation.
  said() {
    return this.lesson.parts[this.place][1].split(/\n\s*\n/).filter((text) => !/^[->]/.test(text)).join(" ").replace(PIECE, (...found) => found.slice(1, 5).find(Boolean) ?? "");
  }

  show(pane) {
    const { lesson, place } = this;
    const { parts } = lesson;
    const last = place === parts.length - 1;
    pane.replaceChildren(
      element("h2", { text: lesson.title }),
      element("div", { class: "told" }, ...this.blocks(parts[place][1])),
      element("div", { class: "row" },
        element("button", { type: "button", id: "lesson-back", disabled: place === 0, text: "Back", onclick: () => this.turn(-1) }),
        element("button", { type: "button", id: "lesson-next", class: "primary", disabled: last, text: "Next", onclick: () => this.turn(1) }),
        element("progress", { max: String(parts.length - 1), value: String(place), "aria-label": "How far the lesson is" }),
        element("span", { class: "muted", text: `${place + 1} of ${parts.length}` })));
  }

  blocks(text) {
    const made = [];
    let question = null;
    for (const block of text.split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean)) {
      const lines = block.split("\n");
      if (lines.every((line) => /^- \[[ x]\] /.test(line))) {
        question = lines.map((line) => ({ right: line[3] === "x", text: line.slice(6) }));
        made.push(this.question(question));
      } else if (block.startsWith("> ")) {
        if (!question || this.solved(question)) made.push(element("p", { class: "because" }, ...this.words(block.replace(/^> ?/gm, ""))));
      } else if (lines.every((line) => line.startsWith("- "))) made.push(element("ul", {}, ...lines.map((line) => element("li", {}, ...this.words(line.slice(2))))));
      else made.push(element("p", {}, ...this.words(block)));
    }
    return made;
  }

  clicked() {
    return this.answers.get(this.place) ?? new Set();
  }

  solved(answers) {
    return answers.some((answer, number) => answer.right && this.clicked().has(number));
  }

  question(answers) {
    const clicked = this.clicked();
    const done = this.solved(answers);
    return element("div", { class: "answers", role: "group", "aria-label": "Answers" }, ...answers.map((answer, number) => {
      const state = clicked.has(number) ? (answer.right ? "right" : "not") : "";
      return element("button", { type: "button", class: state, disabled: done && !state, onclick: () => { this.answers.set(this.place, new Set([...clicked, number])); this.page.refresh(); } },
        element("span", { "aria-hidden": "true", text: state === "right" ? "✓ " : state === "not" ? "✗ " : "" }), ...this.words(answer.text), state === "not" ? element("span", { class: "visually-hidden", text: " (no)" }) : null);
    }));
  }

  // Text with its marks as elements; never markup of the lesson itself.
  words(text) {
    const made = [];
    let from = 0;
    for (const found of text.matchAll(PIECE)) {
      made.push(text.slice(from, found.index));
      const [all, bold, slanted, code, link, riddle] = found;
      if (bold) made.push(element("b", { text: bold }));
      else if (slanted) made.push(element("em", { text: slanted }));
      else if (code) made.push(element("code", { text: code }));
      else made.push(element("button", { type: "button", class: "riddle served", text: link, onclick: () => this.page.menu.open({ kind: "riddle", name: riddle }) }));
      from = found.index + all.length;
    }
    return [...made, text.slice(from)].filter(Boolean);
  }
}
