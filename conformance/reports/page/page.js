"use strict";
// Filters, and lanes that are drawn as they are asked for. Without this script the page says the same, but for those.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const AT_ONCE = 50, WIDTH = 960, BAND = 18, HEIGHT = 40, LETTER = 6.8;
  // Owners are told apart by their names in the band; the tints only help.
  const TINTS = ["#9ec9ee", "#f3c98b", "#a6dcbc", "#e3b3d8", "#d8d06f", "#b9b5ea", "#8fd3d6", "#eba99b"];

  // A link to a clause opens its page.
  function openTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", openTarget);
  openTarget();

  // What a word means, beside it, for the mouse and for the keyboard; without this its link leads there.
  const means = document.getElementById("means");
  function explain(event) {
    const term = event.target.closest && event.target.closest("a.term");
    means.hidden = !term;
    if (!term) return;
    means.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent;
    const at = term.getBoundingClientRect(), own = means.getBoundingClientRect();
    const below = at.bottom + 6 + own.height < innerHeight;
    means.style.left = scrollX + Math.max(4, Math.min(at.left, document.documentElement.clientWidth - own.width - 4)) + "px";
    means.style.top = scrollY + (below ? at.bottom + 6 : at.top - own.height - 6) + "px";
  }
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, explain);
  document.addEventListener("focusout", function () { means.hidden = true; });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") means.hidden = true; });

  const data = document.getElementById("lane-data");
  if (!data) return;
  const run = JSON.parse(data.textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("lane-list");
  const more = document.getElementById("more-lanes");
  const told = document.getElementById("filtered");
  const filtersEvents = Array.from(document.querySelectorAll("details.events"));
  let found = [], shown = 0;

  function make(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  function seconds(bin) { return (bin * run.binUs / 1e6).toFixed(3) + " s"; }

  function owner(code) { return code === -2 ? "several" : run.owners[code]; }

  function draw(lane) {
    const [name, events, isFound, owners, most, digits] = lane;
    const item = document.createElement("li");
    const label = document.createElement("div");
    label.className = "name";
    const bold = document.createElement("b");
    bold.textContent = name;
    const small = document.createElement("div");
    small.textContent = events.toLocaleString("en") + " events, at most " + most.toLocaleString("en") +
      " messages in a bin";
    label.append(bold, small);
    if (isFound) {
      const mark = document.createElement("span");
      mark.className = "tag";
      mark.textContent = "✗ a finding is about it";
      label.append(mark);
    }
    const step = WIDTH / run.bins;
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", "0 0 " + WIDTH + " " + HEIGHT);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    const words = [];
    for (const [first, last] of run.faults) {
      make(picture, "rect", { x: first * step, y: 0, width: Math.max(1, (last - first) * step), height: HEIGHT, class: "lane-fault" });
    }
    for (let i = 0; i < owners.length; i += 3) {
      const [first, last, code] = owners.slice(i, i + 3);
      const x = first * step, wide = Math.max(1.5, (last - first + 1) * step);
      const who = owner(code) + ", " + seconds(first) + " to " + seconds(last + 1);
      if (words.length < 20) words.push(who);
      const group = make(picture, "g", {});
      make(group, "title", {}, who);
      const style = code === -2 ? { class: "lane-several" }
        : { fill: TINTS[code % TINTS.length], stroke: "#57606a", "stroke-width": 0.7 };
      make(group, "rect", Object.assign({ x: x, y: 1, width: wide, height: BAND }, style));
      const text = owner(code);
      const fits = Math.floor((wide - 4) / LETTER);
      if (code !== -2 && (text.length <= fits || fits >= 5)) {
        const cut = text.length <= fits ? text : "…" + text.slice(1 - fits); // names differ at their ends
        make(group, "text", { x: x + 3, y: BAND - 4, class: "lane-text", fill: "#1b1f24", style: "fill:#1b1f24" }, cut);
      }
    }
    let path = "";
    for (let bin = 0; bin < digits.length; bin++) {
      const height = Number(digits[bin]) * 1.8;
      if (height) path += "M" + ((bin + 0.5) * step).toFixed(1) + " " + (HEIGHT - 2) + "v-" + height.toFixed(1);
    }
    if (path) make(picture, "path", { d: path, class: "lane-bar", "stroke-width": Math.max(1, step * 0.8) });
    if (isFound) for (const [clause, bin] of run.marks) {
      const group = make(picture, "g", {});
      make(group, "title", {}, "✗ " + clause + " at " + seconds(bin));
      make(group, "path", { d: "M" + (bin * step).toFixed(1) + " 0V" + HEIGHT, class: "lane-mark" });
    }
    picture.setAttribute("aria-label", name + ": " + (words.join("; ") || "nobody was seen to own it"));
    item.append(label, picture);
    return item;
  }

  // The times, above the lanes.
  function ruler() {
    const item = document.createElement("li");
    item.className = "ruler";
    item.setAttribute("aria-hidden", "true");
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", "0 0 " + WIDTH + " 16");
    picture.setAttribute("preserveAspectRatio", "none");
    for (const [bin, label] of run.ticks) {
      make(picture, "path", { d: "M" + (bin * WIDTH / run.bins).toFixed(1) + " 0V16", class: "lane-bar" });
      make(picture, "text", { x: bin * WIDTH / run.bins + 4, y: 12, class: "lane-text" }, label);
    }
    item.append(document.createElement("div"), picture);
    return item;
  }

  function showMore() {
    const part = document.createDocumentFragment();
    if (!shown && found.length) part.append(ruler());
    for (const lane of found.slice(shown, shown + AT_ONCE)) part.append(draw(lane));
    shown = Math.min(found.length, shown + AT_ONCE);
    list.append(part);
    more.hidden = shown >= found.length;
    more.textContent = "show " + Math.min(AT_ONCE, found.length - shown) + " more of " + found.length + " lanes";
  }

  function wanted(name) { return form.elements[name].value.trim().toLowerCase(); }

  function filter() {
    const lane = wanted("lane"), client = wanted("client"), key = wanted("key");
    found = run.lanes.filter(function (each) {
      if (lane && !each[0].toLowerCase().includes(lane)) return false;
      if (!client) return true;
      for (let i = 2; i < each[3].length; i += 3) if (owner(each[3][i]).toLowerCase().includes(client)) return true;
      return false;
    });
    let events = 0;
    for (const part of filtersEvents) {
      let here = 0;
      for (const row of part.querySelectorAll("tbody tr")) {
        const fits = row.dataset.lane.toLowerCase().includes(lane) &&
          row.dataset.client.toLowerCase().includes(client) && row.dataset.key.toLowerCase().includes(key);
        row.hidden = !fits;
        here += fits;
      }
      events += here;
      const any = lane || client || key;
      part.querySelector(".count").textContent = any ? "(" + here + " fit the filter)" : "";
      if (key && here) part.open = true;
    }
    list.textContent = "";
    shown = 0;
    const any = lane || client || key;
    told.textContent = any ? found.length + " lanes and " + events + " events around findings fit." : "";
    if (key && !events) told.textContent += " No event around a finding has that key; others are not in this file (see the last part).";
    showMore();
  }

  const defs = make(make(document.body, "svg", { width: 0, height: 0, "aria-hidden": "true" }), "defs", {});
  const stripes = make(defs, "pattern", { id: "several", width: 5, height: 5, patternUnits: "userSpaceOnUse" });
  make(stripes, "path", { d: "M0 5 5 0", class: "lane-stripe" });
  const dots = make(defs, "pattern", { id: "befell", width: 7, height: 7, patternUnits: "userSpaceOnUse" });
  make(dots, "circle", { cx: 2, cy: 2, r: 1, class: "lane-dot" });
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(filter); });
  more.addEventListener("click", showMore);
  filter();
})();
