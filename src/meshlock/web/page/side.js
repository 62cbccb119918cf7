// Beside the network: the step, who waits, one node, the events around. Text only, never markup.

import { coloured } from "./code.js";
import { redraw } from "./redraw.js";
import { value, words, message } from "./words.js";

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, thing] of Object.entries(properties)) {
    if (key === "class") made.className = thing;
    else if (key === "text") made.textContent = thing;
    else if (key.startsWith("on")) made[key] = thing;
    else if (thing !== undefined && thing !== false) made.setAttribute(key, thing === true ? "" : thing);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// `more` comes below what is said of the step.
export function stepPane(pane, run, snapshot, more = []) {
  const parts = [];
  const step = snapshot.step;
  const lines = run.lines(step);
  const called = (node) => run.called(node);
  if (step === 0 || !lines.length) {
    parts.push(element("p", { class: "cause", text: "The start" }));
    const holder = run.setup.holder;
    const said = holder >= 0 ? `Node ${called(holder)} has ${run.setup.balanced ? "the token and " : ""}${run.permits === 1 ? "the permit" : `all ${run.permits} permits`}.` : "No node holds the token or permits yet.";
    parts.push(element("p", { class: "muted", text: `${said} Press → for the first step, or Space to play.` }));
    redraw(pane, ...parts, ...told(run), ...more);
    return;
  }
  const [cause, ...effects] = lines;
  parts.push(element("p", { class: "cause", text: words(cause, called, true) + run.chosen(cause) }));
  if (cause.args && Object.keys(cause.args).length) parts.push(element("p", { class: "small", text: message(cause) }));
  const seen = effects.filter((line) => line.event !== "move");
  if (seen.length) {
    parts.push(element("h3", { text: "and so" }));
    parts.push(element("ul", { class: "effects" }, ...seen.map((line) => element("li", { class: line.event, text: line.event === "send" ? words(line, called) : words(line, called) }))));
  }
  if (snapshot.changes.length) {
    parts.push(element("h3", { text: `what changed at ${called(cause.node)}` }));
    const list = element("dl", { class: "changes" });
    for (const [name, before, after] of snapshot.changes) {
      list.append(element("dt", { text: name }), element("dd", {}, element("del", { text: run.value(name, before) }), " → ", element("ins", { text: run.value(name, after) })));
    }
    parts.push(list);
  }
  const key = cause.event === "deliver" ? `deliver ${cause.message}` : cause.event;
  const watched = run.ran.get(step);
  const ran = watched?.length ? watched : run.handlers?.[key]; // they come a little after the run
  if (ran) {
    parts.push(element("h3", { text: watched?.length ? "the lines that ran" : "the handler that ran" }));
    for (const part of ran) parts.push(code(part, `${step} ${Boolean(watched?.length)}`));
  }
  redraw(pane, ...parts, ...more);
  for (const line of pane.querySelectorAll(".code li.lit:first-of-type, .code li:not(.lit) + li.lit")) {
    const box = line.closest(".code");
    if (!box.scrollTop && line.offsetTop > box.clientHeight - 60) box.scrollTop = line.offsetTop - 60;
  }
}

// What a scenario is about.
function told(run) {
  const { story } = run.about;
  return story ? [element("h3", { text: "what it shows" }), ...story.split(/\n\s*\n/).map((text) => element("p", { class: "story-part", text: text.replace(/\n/g, " ") }))] : [];
}

function code(part, when) {
  const list = element("ol");
  coloured(part.lines).forEach((pieces, place) => {
    const number = part.first + place;
    const text = element("span", {}, ...pieces);
    const deep = part.lines[place].search(/\S|$/) + 2; // what does not fit goes on under its beginning
    text.style.paddingLeft = `${deep}ch`;
    text.style.textIndent = `${-deep}ch`;
    list.append(element("li", { class: part.lit.includes(number) ? "lit" : "" }, element("b", { text: String(number) }), text));
  });
  return element("div", { class: "code", "data-key": `${when} ${part.file} ${part.first}`, tabindex: "0", role: "group", "aria-label": `${part.name} in ${part.file}` }, element("span", { class: "name", text: `${part.name} · ${part.file}` }), list);
}

export function waitingPane(pane, run, snapshot, select) {
  const queue = snapshot.queue();
  const inside = snapshot.inside();
  const row = (client, since) => {
    const made = element("tr", { "data-node": client.node, "data-key": client.node, onclick: () => select(client.node) },
      element("td", {}, element("b", { text: run.called(client.node) })),
      element("td", { text: String(client.want) }),
      element("td", {}, element("span", { class: client.entered >= 0 ? "chip inside" : "chip", text: String(client.priority) })),
      element("td", { class: "muted", text: `${since}` }));
    return made;
  };
  const table = (clients, since) => element("table", {},
    element("thead", {}, element("tr", {}, ...["node", "permits", "priority", "since step"].map((text) => element("th", { scope: "col", text })))),
    element("tbody", {}, ...clients.slice(0, 200).map((client) => row(client, since(client)))));
  redraw(pane,
    element("h3", { text: `waiting (${queue.length}), the most urgent first` }),
    queue.length ? table(queue, (client) => client.asked) : element("p", { class: "muted", text: "No client waits." }),
    element("h3", { text: `inside (${inside.length})` }),
    inside.length ? table(inside, (client) => client.entered) : element("p", { class: "muted", text: "No client holds permits." }),
  );
}

export function nodePane(pane, run, snapshot, node, select, driving) {
  const choice = element("select", { "aria-label": "Node", onchange: (event) => select(Number(event.target.value)) }, element("option", { value: "-1", text: "choose a node" }));
  for (let i = 0; i < Math.min(run.size, 5000); i += 1) choice.append(element("option", { value: i, text: run.called(i) }));
  choice.value = String(node);
  const parts = [choice];
  if (node < 0) {
    parts.push(element("p", { class: "muted", text: "Click a node, or press [ and ]." }));
    redraw(pane, ...parts);
    return;
  }
  const chips = element("div", { class: "chips" });
  if (snapshot.gone.has(node)) chips.append(element("span", { class: "chip bad", text: "crashed" }));
  if (snapshot.tokens.has(node)) chips.append(element("span", { class: "chip token", text: "has the token" }));
  if (snapshot.free.has(node)) chips.append(element("span", { class: "chip token", text: `${snapshot.free.get(node)} free here` }));
  for (const client of snapshot.clients.values()) {
    if (client.node !== node) continue;
    const text = client.entered >= 0 ? `holds ${client.want} since step ${client.entered}` : `waits for ${client.want}, priority ${client.priority}`;
    chips.append(element("span", { class: client.entered >= 0 ? "chip inside" : "chip", text }));
  }
  parts.push(chips);
  const near = [...snapshot.links].map((link) => link.split("-").map(Number)).filter((ends) => ends.includes(node)).map(([one, other]) => (one === node ? other : one));
  parts.push(element("h3", { text: "linked to" }));
  parts.push(element("p", { text: near.length ? near.slice(0, 60).map((other) => run.called(other)).join(", ") : run.setup.links === "complete" ? "everybody" : "nobody" }));
  if (driving && run.about.driven) parts.push(actions(run, node, near, driving));
  const state = snapshot.variables[node];
  if (state) {
    parts.push(element("h3", { text: "its variables" }));
    const list = element("dl", { class: "changes" });
    for (const [name, thing] of Object.entries(state)) list.append(element("dt", { text: name }), element("dd", { text: run.value(name, thing) }));
    parts.push(list);
  } else {
    parts.push(element("p", { class: "small", text: "The trace records no states: write it with --trace-states to see variables, queues and heights." }));
  }
  const way = [...snapshot.flying.values()].filter((line) => line.from === node || line.to === node);
  if (way.length) {
    parts.push(element("h3", { text: "in flight" }));
    parts.push(element("ul", { class: "effects" }, ...way.slice(0, 30).map((line) => element("li", { text: `${run.called(line.from)} → ${run.called(line.to)}: ${message(line)}` }))));
  }
  redraw(pane, ...parts);
}

// What can be done at a node without a pointer.
function actions(run, node, near, driving) {
  const row = element("div", { class: "row" }, element("button", { type: "button", text: "Ask or leave", onclick: () => driving.asks(node) }));
  if (!run.about.driven.changing) return row;
  const others = Array.from({ length: run.size }, (_, i) => i).filter((other) => other !== node);
  const end = others.includes(driving.end) ? driving.end : others[0];
  const other = element("select", { "aria-label": "Other end of the link", onchange: (event) => { driving.end = Number(event.target.value); driving.page.refresh(); } }, ...others.map((number) => element("option", { value: number, text: `${run.called(number)}${near.includes(number) ? "" : " (no link)"}` })));
  other.value = String(end);
  row.append(other, element("button", { type: "button", text: "Cut or join", onclick: () => driving.do({ do: near.includes(end) ? "cut" : "join", one: node, other: end }) }));
  return row;
}

export function tip(run, snapshot, node) {
  const parts = [`Node ${run.called(node)}${snapshot.tokens.has(node) ? " · has the token" : ""}${snapshot.free.has(node) ? ` · ${snapshot.free.get(node)} free` : ""}`];
  for (const client of snapshot.clients.values()) {
    if (client.node !== node) continue;
    parts.push(client.entered >= 0 ? `holds ${client.want}` : `waits for ${client.want}, priority ${client.priority}`);
  }
  const state = snapshot.variables[node];
  if (state) {
    for (const name of ["height", "next", "father", "queue", "waiting"]) {
      if (state[name] !== undefined && !(Array.isArray(state[name]) && !state[name].length)) parts.push(`${name} ${value(state[name])}`);
    }
  }
  return parts.join("\n");
}

export function eventsPane(pane, run, step, go) {
  const list = element("div", { class: "events" });
  const from = Math.max(1, step - 18);
  const to = Math.min(run.steps, from + 60);
  for (let number = from; number <= to; number += 1) {
    const lines = run.lines(number);
    if (!lines.length) continue;
    const enters = lines.filter((line) => line.event === "enter").length;
    const text = words(lines[0], (node) => run.called(node), true) + run.chosen(lines[0]) + (enters ? " ● enters" : "");
    list.append(element("button", { type: "button", "data-key": number, "aria-current": number === step ? "step" : undefined, onclick: () => go(number) }, element("b", { text: String(number) }), element("span", { text })));
  }
  redraw(pane, list);
  pane.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

export function permitsBar(bar, run, snapshot) {
  const cells = [];
  const used = snapshot.used();
  const most = run.permits;
  const says = `${used} of ${most} ${most === 1 ? "permit" : "permits"} in use`;
  if (most > 32) {
    const meter = element("meter", { min: "0", max: String(most), value: String(Math.min(used, most)) });
    cells.push(meter);
  } else {
    let count = 0;
    for (const client of snapshot.inside()) {
      for (let i = 0; i < client.want && count < 64; i += 1) {
        count += 1;
        cells.push(element("span", { class: count > most ? "cell over" : "cell used", text: run.called(client.node).slice(0, 4) }));
      }
    }
    let free = 0;
    for (const [node, here] of snapshot.free) if (snapshot.tokens.has(node) || !run.setup.balanced) free += here;
    for (let i = 0; count < most; i += 1) {
      count += 1;
      cells.push(element("span", { class: i < free ? "cell free" : "cell away" }));
    }
  }
  cells.push(element("span", { class: "count", text: says }));
  redraw(bar, ...cells);
  bar.setAttribute("aria-label", says);
}
