// Everything that is so between two steps, and how a line of the trace changes it.
// The server knows the same (snapshot.py); a test holds the two together.

import { total } from "./words.js";

export const pair = (one, other) => (one < other ? `${one}-${other}` : `${other}-${one}`);

export class Snapshot {
  constructor(setup, links, shown) {
    this.setup = setup;
    this.tokens = new Map(shown.tokens);
    this.free = new Map(shown.free);
    this.clients = new Map();
    for (const [number, node, want, priority, asked, entered] of shown.clients) {
      this.clients.set(number, { node, want, priority, asked, entered });
    }
    this.flying = new Map(shown.flying.map((message) => [message.id, message]));
    this.links = new Set(links);
    for (const [one, other] of shown.down) this.links.delete(pair(one, other));
    for (const [one, other] of shown.up) this.links.add(pair(one, other));
    this.gone = new Set(shown.gone);
    this.variables = shown.variables.slice();
    this.step = 0;
    this.changes = []; // of the last step: [variable, before, after]
  }

  // One step: its number and its lines.
  follow(step, lines) {
    this.step = step;
    this.changes = [];
    for (const line of lines) this.line(step, line);
  }

  line(step, line) {
    const { event, node } = line;
    if (line.tokens !== undefined && event !== "send") put(this.tokens, node, line.tokens);
    if (line.free !== undefined) put(this.free, node, total(line.free));
    if (line.state && this.variables.length) {
      const before = this.variables[node];
      for (const name of Object.keys(line.state)) this.changes.push([name, before[name], line.state[name]]);
      this.variables[node] = { ...before, ...line.state };
    }
    switch (event) {
      case "send":
        this.flying.set(line.id, {
          id: line.id, step, from: node, to: line.to, message: line.message, args: line.args ?? {},
          tokens: line.tokens ?? 0, permits: total(line.permits ?? 0),
        });
        break;
      case "deliver":
      case "undelivered":
      case "drop":
        this.flying.delete(line.id);
        break;
      case "request":
        this.clients.set(line.client, { node, want: total(line.want ?? 1), priority: line.priority ?? 0, asked: step, entered: -1 });
        break;
      case "priority": {
        const client = this.clients.get(line.client);
        if (client) this.clients.set(line.client, { ...client, priority: line.priority });
        break;
      }
      case "enter": {
        const client = this.clients.get(line.client) ?? { node, want: total(line.want ?? 1), priority: 0, asked: step };
        this.clients.set(line.client, { ...client, entered: step });
        break;
      }
      case "give-back": {
        const client = this.clients.get(line.client);
        if (client) this.clients.set(line.client, { ...client, want: client.want - total(line.permits) });
        break;
      }
      case "leave":
      case "withdraw":
      case "lease-lost":
        this.clients.delete(line.client);
        break;
      case "link-up":
        this.links.add(pair(node, line.peer));
        break;
      case "link-down":
        this.links.delete(pair(node, line.peer));
        break;
      case "crash":
        this.gone.add(node);
        break;
      case "restart":
        this.gone.delete(node);
        break;
    }
  }

  used() {
    let sum = 0;
    for (const client of this.clients.values()) if (client.entered >= 0) sum += client.want;
    return sum;
  }

  // The clients that wait, the most urgent first.
  queue() {
    return [...this.clients.entries()]
      .filter(([, client]) => client.entered < 0)
      .map(([number, client]) => ({ number, ...client }))
      .sort((a, b) => b.priority - a.priority || a.asked - b.asked);
  }

  inside() {
    return [...this.clients.entries()]
      .filter(([, client]) => client.entered >= 0)
      .map(([number, client]) => ({ number, ...client }))
      .sort((a, b) => a.entered - b.entered);
  }
}

function put(map, key, value) {
  if (value) map.set(key, value);
  else map.delete(key);
}
