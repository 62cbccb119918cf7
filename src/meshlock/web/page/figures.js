// Rates of the whole mesh: each node's from what it told last and the time before, added up.

import { drawn } from "./map.js";

const KEPT = 120;
const COUNTED = ["entries", "waited", "sent", "moved"];
const FORGOTTEN = 5; // rounds of questions: who has told nothing for longer counts for nothing

export class Figures {
  constructor() {
    this.last = new Map(); // node: when it told, what it had counted, its rates
    this.past = []; // sums, the oldest first
  }

  add(nodes, every) {
    const now = performance.now() / 1000;
    const sum = { entries: 0, waited: 0, sent: 0, moved: 0 };
    for (const [name, node] of nodes) {
      if (!node.pool_view?.known || node.distance === null || node.age > FORGOTTEN * every) continue;
      const at = now - node.age;
      const before = this.last.get(name);
      if (!before) this.last.set(name, { at, pool_view: node.pool_view, rates: {} });
      else if (at - before.at > 0.2) {
        const rates = {};
        for (const what of COUNTED) rates[what] = Math.max(0, node.pool_view[what] - before.pool_view[what]) / (at - before.at);
        this.last.set(name, { at, pool_view: node.pool_view, rates });
      }
      for (const what of COUNTED) sum[what] += this.last.get(name).rates[what] ?? 0;
    }
    sum.wait = sum.entries > 0 ? sum.waited / sum.entries : 0;
    this.past.push(sum);
    while (this.past.length > KEPT) this.past.shift();
  }

  line(what) {
    return this.past.map((sum) => sum[what]);
  }

  now(what) {
    const some = this.line(what).slice(-6).filter((number) => what !== "wait" || number > 0);
    return some.length ? some.reduce((sum, number) => sum + number, 0) / some.length : 0;
  }
}

export function chart(svg, numbers) {
  const top = Math.max(...numbers, 1e-9) * 1.15;
  const step = 240 / (Math.max(numbers.length, 24) - 1);
  const from = 240 - step * (numbers.length - 1);
  const points = numbers.map((number, i) => `${(from + i * step).toFixed(1)} ${(46 - (number / top) * 44).toFixed(1)}`);
  if (points.length < 2) return;
  svg.replaceChildren(drawn("path", { class: "area", d: `M${from} 47 L${points.join(" L")} L240 47z` }), drawn("path", { d: `M${points.join(" L")}` }));
}
