// What the keys do.

import { alone } from "./alone.js";
import { presenting } from "./type.js";

const $ = (id) => document.getElementById(id);

export function keys(page) {
  const doing = {
    " ": () => (page.playing ? page.pause() : page.play()),
    ArrowRight: (event) => page.walk(event.shiftKey ? 10 : 1),
    ArrowLeft: (event) => page.walk(event.shiftKey ? -10 : -1),
    PageDown: () => (page.run.about.lesson ? page.lesson.turn(1) : page.walk(1)),
    PageUp: () => (page.run.about.lesson ? page.lesson.turn(-1) : page.walk(-1)),
    ".": () => document.documentElement.classList.toggle("blank", presenting() && !document.documentElement.classList.contains("blank")),
    Home: () => { page.pause(); page.go(0); },
    End: () => { page.pause(); page.go(page.run.steps); },
    "+": () => page.faster(1),
    "=": () => page.faster(1),
    "-": () => page.faster(-1),
    n: () => page.find(false),
    p: () => page.find(true),
    g: () => { $("step").focus(); $("step").select(); },
    d: () => page.diagram(),
    "[": () => page.select((Math.max(page.stage.selected, 0) - 1 + page.run.size) % page.run.size),
    "]": () => page.select((page.stage.selected + 1) % page.run.size),
    0: () => { page.stage.view = { zoom: 1, x: 0, y: 0 }; page.dirty = true; },
    o: () => { if (!alone) page.menu.show(); },
    f: () => page.present(!presenting()),
    "<": () => page.type.by(-1),
    ">": () => page.type.by(1),
    b: () => { if (!alone) page.branches.leave(page.step); },
    a: () => page.driving?.asks(page.stage.selected),
    "?": () => $("help").showModal(),
    Escape: () => (presenting() ? page.present(false) : page.select(-1)),
  };
  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest("input, select, textarea, dialog");
    if (busy || event.ctrlKey || event.metaKey || event.altKey || !page.run) return;
    if (event.key === " " && event.target.closest("button:enabled, a")) return;
    const action = doing[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
