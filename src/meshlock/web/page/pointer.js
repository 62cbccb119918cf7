// What the pointer does on the network and on the time line.

const $ = (id) => document.getElementById(id);

export function pointer(page) {
  const canvas = $("network");
  const { stage } = page;
  let held = null;
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    const at = spot(event);
    held = { at, view: { ...stage.view }, what: stage.under(at.x, at.y), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = spot(event);
    if (held) {
      const dx = at.x - held.at.x;
      const dy = at.y - held.at.y;
      if (Math.hypot(dx, dy) > 4) held.moved = true;
      if (!held.moved) return;
      if (held.what?.node >= 0 && page.driving) page.driving.drags(held.what.node, stage.fromScreen(at.x, at.y));
      else stage.view = { ...held.view, x: held.view.x + dx, y: held.view.y + dy };
      page.dirty = true;
      return;
    }
    page.pointed = at;
    page.looks(at);
  });
  const release = (event) => {
    if (!held) return;
    const { what, moved } = held;
    held = null;
    const at = spot(event);
    if (moved && what?.node >= 0 && page.driving) page.driving.drops(what.node, stage.fromScreen(at.x, at.y));
    else if (!moved && page.driving?.clicks(what, at)) return;
    else if (!moved) page.select(what?.node ?? -1);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", () => { held = null; stage.dragged = null; page.dirty = true; });
  canvas.addEventListener("pointerleave", () => { page.pointed = null; $("tip").hidden = true; stage.over = null; page.dirty = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = spot(event);
    const before = stage.fromScreen(at.x, at.y);
    stage.view.zoom = Math.min(Math.max(stage.view.zoom * Math.exp(-event.deltaY * 0.0015), 0.4), 40);
    const after = stage.toScreen(before.x, before.y);
    stage.view.x += at.x - after.x;
    stage.view.y += at.y - after.y;
    page.dirty = true;
  }, { passive: false });
  const strip = $("gantt");
  let chosen = null;
  strip.addEventListener("pointerdown", (event) => {
    if (!page.run) return;
    page.pause();
    strip.setPointerCapture(event.pointerId);
    const step = page.strip.stepAt(event.offsetX);
    if (event.shiftKey) {
      chosen = step;
      page.strip.span = [Math.max(step, 1), Math.max(step, 1)];
      page.dirty = true;
    } else {
      page.strip.span = null;
      const node = page.strip.nodeAt(event.offsetY);
      if (event.offsetX < 40 && node >= 0) page.select(node);
      else page.go(step);
    }
  });
  strip.addEventListener("pointermove", (event) => {
    if (chosen === null) return;
    const step = page.strip.stepAt(event.offsetX);
    page.strip.span = [Math.max(1, Math.min(chosen, step)), Math.max(1, chosen, step)];
    page.dirty = true;
  });
  strip.addEventListener("pointerup", () => {
    if (chosen !== null && page.strip.span[1] > page.strip.span[0]) page.diagram();
    chosen = null;
  });
  strip.addEventListener("wheel", (event) => {
    event.preventDefault();
    page.strip.zoomed = true;
    page.strip.pixels = Math.min(Math.max(page.strip.pixels * Math.exp(-event.deltaY * 0.0015), 1), 60);
    page.dirty = true;
  }, { passive: false });
}
